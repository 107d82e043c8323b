"""Equal calls at once: the first one is made, the others wait for its answer."""

from __future__ import annotations

import asyncio
import copy
import time
import weakref

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.errors import ConnectError, LMClientError, ProtocolError, ProviderError, TimeoutError
from lmclient.profiles.model import ModelProfile

Outcome = Completion | LMClientError | None
"""How a flight ended: the answer, an error that meets all equal calls alike, or given up."""

_Key = tuple[str, ...]


class Flight(msgspec.Struct, frozen=True, eq=False):
    """A call in progress, for which equal calls wait."""

    key: _Key
    profile: ModelProfile
    streams: bool
    landed: asyncio.Future[Outcome]


class Flights:
    """The calls in progress of each event loop."""

    def __init__(self) -> None:
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, Flight]] = (
            weakref.WeakKeyDictionary()
        )

    async def join(self, key: str, request: CompletionRequest) -> Completion | Flight:
        """The answer of an equal call in progress; else a new flight, which the caller has to land.

        One that was given up is taken over by the first who waits for it. So is a stream whose
        reader lets it stand for `timeouts.idle`. Raises the error that the equal call failed with.
        """
        loop = asyncio.get_running_loop()
        flights = self._loops.setdefault(loop, {})
        whole_key = (key, *(profile.name for profile in request.fallbacks))
        while (flight := flights.get(whole_key)) is not None:
            outcome = await _wait(flight, request)
            if isinstance(outcome, Completion):
                return outcome
            if outcome is not None and flight.profile == request.profile:
                raise _own(outcome) from outcome
            if flights.get(whole_key) is flight:
                del flights[whole_key]
        flights[whole_key] = flight = Flight(whole_key, request.profile, request.stream, loop.create_future())
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
    remaining = None if request.deadline is None else max(0.0, request.deadline - time.monotonic())
    patience = flight.profile.timeouts.idle if flight.streams else None
    limits = [limit for limit in (remaining, patience) if limit is not None]
    await asyncio.wait({flight.landed}, timeout=min(limits, default=None))
    if flight.landed.done():
        return flight.landed.result()
    if remaining is not None and (patience is None or remaining <= patience):
        raise TimeoutError(
            f"Profile {request.profile.name!r}: the call's time ran out while it waited for the answer of "
            "an equal call."
        )
    return None


def _own(error: LMClientError) -> LMClientError:
    """A copy of the error for another caller, to whom nothing has arrived."""
    own = copy.copy(error)
    own.partial = None
    return own
