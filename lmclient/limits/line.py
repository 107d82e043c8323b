"""A line of calls that wait for a limit: first come, first served, on any event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque


class Line:
    """Those who wait for one scope. The first one is woken when something may have become free.

    Only the first in line takes anything, in its own task: whoever is cancelled leaves nothing
    behind. Needs no lock, since single operations of a deque are atomic.
    """

    def __init__(self) -> None:
        self._waiting: deque[Place] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self) -> Place:
        """A place at the end, to be left in any case."""
        place = Place(self)
        self._waiting.append(place)
        return place

    def leave(self, place: Place) -> None:
        """Frees a place; whoever is first now is woken."""
        with contextlib.suppress(ValueError):  # taken out already when its event loop was closed
            self._waiting.remove(place)
        self.wake()

    def is_first(self, place: Place) -> bool:
        """Whether it is this one's turn."""
        return self._waiting[0] is place

    def wake(self) -> None:
        """Has the first one look again. May be called on any thread."""
        while self._waiting:
            try:
                first = self._waiting[0]
                if first.wake():
                    return
                self._waiting.remove(first)  # its event loop is closed: nobody waits there any more
            except (IndexError, ValueError):
                continue  # it left in this very moment


class Place:
    """The place of one waiting call in a line."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    @property
    def first(self) -> bool:
        """Whether it is this one's turn."""
        return self._line.is_first(self)

    def leave(self) -> None:
        """Leaves the line."""
        self._line.leave(self)

    def wake(self) -> bool:
        """Ends the rest, now or the next one; False if the event loop is closed."""
        try:
            self._loop.call_soon_threadsafe(self._woken.set)
        except RuntimeError:
            return False
        return True

    async def rest(self, seconds: float | None) -> None:
        """Waits until woken, or for so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
