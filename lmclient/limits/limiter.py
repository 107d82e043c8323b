"""Admits calls within their limits, one after the other."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

from lmclient.core.request import ProviderLimits
from lmclient.errors import RateLimitTimeoutError
from lmclient.limits.base import Demand, Lease, Wait
from lmclient.limits.line import Line, Place
from lmclient.limits.provider import LONGEST, ProviderAllowance
from lmclient.limits.storage import StoreFactory


class Limiter:
    """The lines of all scopes before one store, and what the providers themselves have said.

    Shared by the event loops and threads of a process. `clock` gives seconds. What providers say is
    waited for up to `max_wait` seconds.
    """

    def __init__(
        self, make_store: StoreFactory, clock: Callable[[], float], *, max_wait: float = LONGEST
    ) -> None:
        self._make_store = make_store
        self._clock = clock
        self._max_wait = max_wait
        self._pid = 0
        self._start_anew()

    def _start_anew(self) -> None:
        self._lines: dict[tuple[str, bool], Line] = {}
        self._allowances: dict[str, ProviderAllowance] = {}
        self._store = self._make_store(self._freed)
        self._pid = os.getpid()

    def learn(self, scope: str, said: ProviderLimits, failed: bool) -> None:
        """Takes in what the provider said about its limits; `failed` if the answer was an error."""
        self._allowances.setdefault(scope, ProviderAllowance()).learn(said, failed, self._clock())

    def holds_back(self, scope: Callable[[], str]) -> bool:
        """Whether what its provider said may hold calls of a scope back."""
        if not self._allowances:  # as in most programs at most times, so the name is not even made
            return False
        allowance = self._allowances.get(scope())
        if allowance is None or allowance.active(self._clock()):
            return allowance is not None
        self._allowances.pop(scope(), None)
        return False

    async def admit(self, demand: Demand, deadline: float | None, *, wait: bool = True) -> Lease:
        """What the demand takes, as soon as it is there and everyone who came earlier has theirs.

        Raises `RateLimitTimeoutError` once it is certain that this will not be before `deadline`
        (in the clock's time), or at once instead of waiting, or where the provider is to be waited for
        too long.
        """
        if self._pid != os.getpid():
            self._start_anew()  # what a parent process has taken is given back there
        if demand.tokens_per_minute is not None and demand.tokens > demand.tokens_per_minute:
            raise RateLimitTimeoutError(
                f"The call may take {demand.tokens} tokens, more than limits.tokens_per_minute = "
                f"{demand.tokens_per_minute} ever lets through; shorten it or lower max_tokens."
            )
        # Who holds a slot and wants to send once more must not stand behind those who wait for a slot.
        line = self._lines.setdefault((demand.scope, demand.slots > 0), Line())
        place = line.join()  # before anything is awaited, so that calls are served as they were made
        try:
            return await self._in_turn(place, len(line) - 1, demand, deadline, wait)
        finally:
            place.leave()

    async def aclose(self) -> None:
        """Releases what the store holds on the running event loop."""
        await self._store.aclose()

    async def _in_turn(
        self, place: Place, ahead: int, demand: Demand, deadline: float | None, wait: bool
    ) -> Lease:
        first = place.first
        outcome = await self._take(demand, 0 if first else max(ahead, 1), waits=wait)
        while isinstance(outcome, Wait):
            if first and not wait:
                raise RateLimitTimeoutError(
                    "The limits leave no room for the call now, and it is not to wait."
                )
            rest = outcome.seconds if place.first else None
            if deadline is not None:
                left = deadline - self._clock()
                if outcome.at_least >= left:
                    raise RateLimitTimeoutError(_too_late(left, outcome.at_least))
                rest = left if rest is None else min(rest, left)
            await place.rest(None if rest == math.inf else rest)
            first = place.first
            outcome = await self._take(demand, 0, waits=wait) if first else Wait(None)
        return outcome

    async def _take(self, demand: Demand, ahead: int, *, waits: bool) -> Lease | Wait:
        allowance = self._allowances.get(demand.scope)
        if allowance is not None and (held := allowance.wait(demand.tokens, self._clock())):
            if held > self._max_wait:
                raise RateLimitTimeoutError(
                    f"Its provider lets nothing through for the next {held:.1f} s; "
                    f"calls wait for that no longer than {self._max_wait:g} s."
                )
            return Wait(held, held)
        outcome = await self._store.take(demand, ahead, waits=waits)
        if allowance is not None and not isinstance(outcome, Wait):
            allowance.take(demand.tokens)
        return outcome

    def _freed(self, scope: str) -> None:
        for slots in (True, False):
            line = self._lines.get((scope, slots))
            if line is not None:
                line.wake()


def _too_late(left: float, at_least: float) -> str:
    if left <= 0:
        return "The limits left no room for the call until its time ran out."
    return (
        f"The limits leave no room for the call for the next {at_least:.1f} s, "
        f"and it has only {left:.1f} s left."
    )
