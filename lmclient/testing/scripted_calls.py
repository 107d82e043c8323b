"""The book of a scripted model's calls: who began and ended when, in ticks, and who waits for whom."""

from __future__ import annotations

import asyncio
import builtins
import itertools
import weakref

import msgspec

from lmclient.core.conversation import Conversation, Role
from lmclient.core.request import CompletionRequest, Options
from lmclient.errors import LMClientError, TimeoutError
from lmclient.testing.scripted_clock import LogicalClock
from lmclient.testing.scripted_reply import When

PATIENCE = 5.0
"""Seconds that `wait_for` waits."""


class ScriptedRequest(msgspec.Struct, kw_only=True):
    """One request as it came. `start` and `end` are ticks, which count all beginnings and ends.

    `end` is None while the call is under way; a stream ends when it is read to its end or left.
    """

    conversation: Conversation
    options: Options
    category: str | None
    stream: bool
    skip_cache: bool
    tags: dict[str, str]
    start: int
    end: int | None = None

    @property
    def system(self) -> str:
        """The text of the system turn, "" if there is none."""
        return next((turn.text for turn in self.conversation.turns if turn.role is Role.SYSTEM), "")

    @property
    def prompt(self) -> str:
        """The text of the last user turn."""
        turns = reversed(self.conversation.turns)
        return next((turn.text for turn in turns if turn.role is Role.USER), "")

    def fits(self, when: When) -> bool:
        """Whether a rule is about this request."""
        if when is None:
            return True
        if isinstance(when, str):
            return when in self.prompt or when in self.system
        return when(self)


class _Rendezvous:
    def __init__(self, n: int, when: When, timeout: float) -> None:
        self.n = n
        self.when = when
        self.timeout = timeout
        self.held: list[asyncio.Future[None]] = []
        self.over = False


class Calls:
    """All calls of one model, of all its clients."""

    def __init__(self) -> None:
        self.requests: list[ScriptedRequest] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self._ticks = itertools.count(1)
        self._clocks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LogicalClock] = (
            weakref.WeakKeyDictionary()
        )
        self._rendezvous: list[_Rendezvous] = []
        self._awaited: list[tuple[int, asyncio.Future[None]]] = []

    def begin(self, request: CompletionRequest) -> ScriptedRequest:
        """Records a request that has come."""
        recorded = ScriptedRequest(
            conversation=request.conversation.copy(),
            options=request.options,
            category=request.category,
            stream=request.stream,
            skip_cache=request.skip_cache,
            tags=request.tags,
            start=next(self._ticks),
        )
        self.requests.append(recorded)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        for n, future in self._awaited:
            if len(self.requests) >= n:
                future.get_loop().call_soon_threadsafe(_resolve, future)
        return recorded

    def end(self, request: ScriptedRequest) -> None:
        """Records that the call is over. Harmless when called again."""
        if request.end is None:
            request.end = next(self._ticks)
            self.in_flight -= 1

    def clock(self) -> LogicalClock:
        """The clock of the running event loop."""
        loop = asyncio.get_running_loop()
        clock = self._clocks.get(loop)
        if clock is None:
            clock = self._clocks[loop] = LogicalClock(loop)
        return clock

    def stages(self) -> int:
        """The longest chain of calls of which each began after the end of the one before."""
        length, ended = 0, 0
        for end, start in sorted((r.end, r.start) for r in self.requests if r.end is not None):
            if start > ended:
                length, ended = length + 1, end
        return length + any(r.end is None and r.start > ended for r in self.requests)

    def add_rendezvous(self, n: int, when: When, timeout: float) -> None:
        """See `ScriptedModel.rendezvous`."""
        self._rendezvous.append(_Rendezvous(n, when, timeout))

    async def meet(self, request: ScriptedRequest) -> None:
        """Waits where the request has a rendezvous. Raises `LMClientError` if the others do not come."""
        for meeting in self._rendezvous:
            if not meeting.over and request.fits(meeting.when):
                await self._wait_at(meeting)
                return

    async def wait_for(self, n: int) -> None:
        """See `ScriptedModel.wait_for_requests`."""
        if len(self.requests) >= n:
            return
        awaited = (n, asyncio.get_running_loop().create_future())
        self._awaited.append(awaited)
        try:
            async with asyncio.timeout(PATIENCE):
                await awaited[1]
        except builtins.TimeoutError:
            came = len(self.requests)
            raise TimeoutError(
                f"{came} of {n} requests came to the scripted model in {PATIENCE:g} s."
            ) from None
        finally:
            self._awaited.remove(awaited)

    async def _wait_at(self, meeting: _Rendezvous) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        meeting.held.append(future)
        if len(meeting.held) >= meeting.n:
            meeting.over = True
            for held in meeting.held:
                held.get_loop().call_soon_threadsafe(_resolve, held)
        try:
            async with asyncio.timeout(meeting.timeout):
                await future
        except builtins.TimeoutError:
            meeting.over = True
            raise LMClientError(
                f"rendezvous({meeting.n}) of the scripted model: only {len(meeting.held)} calls were in "
                f"flight at once within {meeting.timeout:g} s; the calls wait for each other."
            ) from None
        except asyncio.CancelledError:
            meeting.held.remove(future)
            raise


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
