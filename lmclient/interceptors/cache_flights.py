"""Equal calls at once: the first one is made, the others wait for its answer."""

from __future__ import annotations

import asyncio
import copy
import math
import time
import weakref

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.core.tools import ToolCall
from lmclient.errors import ConnectError, LMClientError, ProtocolError, ProviderError, TimeoutError
from lmclient.interceptors.retry import is_retryable
from lmclient.profiles.model import ModelProfile

Outcome = Completion | LMClientError | None
"""How a flight ended: the answer, an error that meets all equal calls alike, or given up."""

MORE_TIME = 1.0
"""Seconds by which a call has to last longer than another, so that a retry may cure what failed the other."""

LONGEST_WAIT = 60.0
"""Seconds; a call that has as many left when it fails has not lacked the time to try again."""

_Key = tuple[str, ...]


class Flight(msgspec.Struct, eq=False):
    """A call in progress, for which equal calls wait. `stream` is what its caller reads, None before."""

    key: _Key
    profile: ModelProfile
    deadline: float | None
    landed: asyncio.Future[Outcome]
    stream: weakref.ref[AsyncCompletionStream] | None = None

    def arrived(self) -> tuple[str, str, tuple[ToolCall, ...]] | None:
        """What of the answer its caller has read so far, None before there is a stream to read."""
        if self.stream is None:
            return None
        stream = self.stream()
        partial = Completion() if stream is None else stream.result()
        return partial.text, partial.reasoning, partial.tool_calls


class Flights:
    """The calls in progress of each event loop."""

    def __init__(self) -> None:
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, Flight]] = (
            weakref.WeakKeyDictionary()
        )

    async def join(self, key: str, request: CompletionRequest) -> Completion | Flight:
        """The answer of an equal call in progress; else a new flight, which the caller has to land.

        One that was given up is taken over by the first who waits for it. So is a stream whose
        reader lets it stand for `timeouts.idle`. Raises the error that the equal call failed with,
        unless it may only have lacked the time to try again that this call has.
        """
        loop = asyncio.get_running_loop()
        flights = self._loops.setdefault(loop, {})
        whole_key = (key, *(profile.name for profile in request.fallbacks))
        while (flight := flights.get(whole_key)) is not None:
            outcome = await _wait(flight, request)
            if isinstance(outcome, Completion):
                return outcome
            if outcome is not None and _concerns(outcome, flight, request):
                raise _own(outcome) from outcome
            if flights.get(whole_key) is flight:
                del flights[whole_key]
        flights[whole_key] = flight = Flight(
            whole_key, request.profile, request.deadline, loop.create_future()
        )
        return flight

    def land(self, flight: Flight, outcome: Completion | BaseException | None) -> None:
        """Ends the flight. Errors that are the one caller's own, such as its time, count as given up."""
        if isinstance(outcome, BaseException) and not isinstance(
            outcome, ProviderError | ProtocolError | ConnectError
        ):
            outcome = None
        flights = self._loops.get(flight.landed.get_loop(), {})
        if flights.get(flight.key) is flight:
            del flights[flight.key]
        if not flight.landed.done():
            flight.landed.set_result(outcome)


async def _wait(flight: Flight, request: CompletionRequest) -> Outcome:
    """How the flight ended; given up if its caller lets a stream stand."""
    patience = flight.profile.timeouts.idle
    before = None
    while True:
        remaining = math.inf if request.deadline is None else max(0.0, request.deadline - time.monotonic())
        await asyncio.wait({flight.landed}, timeout=min(remaining, patience))
        if flight.landed.done():
            return flight.landed.result()
        if remaining <= patience:
            raise TimeoutError(
                f"Profile {request.profile.name!r}: the call's time ran out while it waited for the answer "
                "of an equal call."
            )
        arrived = flight.arrived()
        if arrived is not None and arrived == before:
            return None
        before = arrived


def _concerns(error: LMClientError, flight: Flight, request: CompletionRequest) -> bool:
    """Whether the error that the flight failed with would meet this call as well."""
    if flight.profile != request.profile:
        return False
    if not is_retryable(error) or flight.deadline is None:
        return True
    if flight.deadline - time.monotonic() > LONGEST_WAIT:  # it did not lack the time
        return True
    return request.deadline is not None and request.deadline <= flight.deadline + MORE_TIME


def _own(error: LMClientError) -> LMClientError:
    """A copy of the error for another caller, to whom nothing has arrived."""
    own = copy.copy(error)
    own.partial = None
    return own
