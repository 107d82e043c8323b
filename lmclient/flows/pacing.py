"""Fair shares of the event loop: how many steps begin before everybody else gets a turn."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque

BEGINNINGS = 16
"""Steps and branches of all walks together that begin in one turn of the event loop.

A step takes some hundred microseconds of it, client and provider included.
"""

_pacers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pacer] = weakref.WeakKeyDictionary()


async def turn() -> None:
    """Returns when a step may begin on the running event loop, at once if it is not busy."""
    loop = asyncio.get_running_loop()
    pacer = _pacers.get(loop)
    if pacer is None:
        pacer = _pacers[loop] = Pacer()
    await pacer.turn(loop)


class Pacer:
    """Lets `BEGINNINGS` callers through in each turn of one event loop, in the order they came."""

    def __init__(self) -> None:
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """See `turn`."""
        if self._begun == 0:
            loop.call_soon(self._next_turn, loop)
        self._begun += 1
        if self._begun > BEGINNINGS:
            waiting: asyncio.Future[None] = loop.create_future()
            self._waiting.append(waiting)
            await waiting

    def _next_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        released = 0
        while self._waiting and released < BEGINNINGS:
            waiting = self._waiting.popleft()
            if not waiting.done():  # else its caller was cancelled
                waiting.set_result(None)
                released += 1
        self._begun = released + len(self._waiting)
        if self._begun:
            loop.call_soon(self._next_turn, loop)
