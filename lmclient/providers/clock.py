"""Limits of time on an answer that arrives piece by piece."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Awaitable
from typing import TypeVar

from lmclient.core.request import CompletionRequest, seconds_left
from lmclient.errors import TimeoutError

T = TypeVar("T")
OVER = "the call's timeout, or timeouts.total of the profile, ran out"


def too_late(request: CompletionRequest) -> TimeoutError:
    """The error of a call whose time was over before it could be sent."""
    return TimeoutError(f"Profile {request.profile.name!r}: {OVER} before the request was sent.")


async def in_time(request: CompletionRequest, asked: Awaitable[T]) -> T:
    """What has to be known before a request can be sent, within the call's time.

    Raises `TimeoutError` when that is over.
    """
    try:
        async with asyncio.timeout(seconds_left(request)) as timer:
            return await asked
    except builtins.TimeoutError:
        if timer.expired():
            raise too_late(request) from None
        raise


class Watchdog:
    """Ends a wait when it passes a deadline that moves with every sign of life.

    One timer serves a whole answer: a sign of life only moves a number, and the timer looks at it
    when it fires. That costs next to nothing per chunk, unlike a timeout around each read.

    `deadline` is that of the whole call in the loop's time, or None. The timer looks for the first
    time after `look` seconds at the latest: set to the shortest limit, it need not be set anew.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float | None, look: float = 60.0) -> None:
        self._loop = loop
        self._look = look
        self._call_ends = deadline
        self._waits_until = 0.0
        self._limit = ""
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._expired = False

    def allow(self, seconds: float, limit: str) -> None:
        """Allows the answer `seconds` from now for its next sign of life; `limit` names the setting."""
        now = self._loop.time()
        self._limit = limit
        self._waits_until = ends = now + seconds
        if self._timer is None or self._timer.when() > ends:
            if self._call_ends is not None and self._call_ends < ends:
                ends = self._call_ends
            self._arm(min(ends, now + self._look))

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """The awaited value. Raises `TimeoutError` when the deadline passes first.

        What is awaited may move the deadline, and may wait itself for a part of it.
        """
        task = asyncio.current_task(self._loop)
        assert task is not None
        requested = task.cancelling()
        before, self._waiting = self._waiting, task
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self._expired:
                self._expired = False  # taken back once, though waits may nest
                if task.uncancel() <= requested:
                    raise self._error() from None
            raise
        finally:
            self._waiting = before

    def stop(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ends(self) -> float:
        return self._waits_until if self._call_ends is None else min(self._waits_until, self._call_ends)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        ends = self._ends()
        if ends > self._loop.time():
            self._arm(ends)
        elif self._waiting is not None:  # else the caller is busy: its next wait arms the timer anew
            self._expired = True
            self._waiting.cancel()

    def _error(self) -> TimeoutError:
        if self._call_ends is not None and self._call_ends <= self._loop.time():
            return TimeoutError(f"no whole answer in time; {OVER}.")
        return TimeoutError(f"the server was silent for longer than timeouts.{self._limit} allows.")
