"""Logical time: it passes when everybody waits, so that delays order things and nobody sleeps."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math

QUIET = 10
"""Turns of the event loop without any sign of life, after which everybody is taken to wait."""


class LogicalClock:
    """The time of one event loop. It stands still while calls begin or streams move."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_soon = loop.call_soon
        self._create_future = loop.create_future
        self._now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._stirred = False
        self._quiet_turns = 0
        self._running = False

    async def wait(self, delay: float) -> None:
        """Returns when `delay` logical seconds have passed, at the earliest when everybody waits."""
        future: asyncio.Future[None] = self._create_future()
        if delay != math.inf:
            heapq.heappush(self._waiting, (self._now + delay, next(self._numbers), future))
            self.stir()
            if not self._running:
                self._running = True
                self._call_soon(self._turn)
        await future

    def stir(self) -> None:
        """Says that something still happens at this point of time."""
        self._stirred = True

    def _turn(self) -> None:
        self._quiet_turns = 0 if self._stirred else self._quiet_turns + 1
        self._stirred = False
        if self._quiet_turns >= QUIET:
            self._quiet_turns = 0
            self._advance()
        if self._waiting:
            self._call_soon(self._turn)
        else:
            self._running = False

    def _advance(self) -> None:
        """Moves to the next point of time at which somebody is due, and lets all go who are."""
        waiting = self._waiting
        while waiting and waiting[0][2].done():  # cancelled
            heapq.heappop(waiting)
        if not waiting:
            return
        self._now = waiting[0][0]
        while waiting and waiting[0][0] <= self._now:
            _, _, future = heapq.heappop(waiting)
            if not future.done():
                future.set_result(None)
