"""The state of the limits in the memory of one process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from lmclient.limits.base import SPAN, Demand, Lease, Wait
from lmclient.limits.window import RequestWindow, TokenEntry, TokenWindow


class MemoryStore:
    """Limits of one process; its event loops and threads share them.

    `clock` gives seconds, `span` is how many of them "per minute" means. `freed` is called with a
    scope, on any thread, when something of it was given back.
    """

    def __init__(
        self, clock: Callable[[], float], freed: Callable[[str], None], *, span: float = SPAN
    ) -> None:
        self._clock = clock
        self._span = span
        self._freed = freed
        self._lock = threading.Lock()
        self._scopes: dict[str, _Scope] = {}
        self._dropped: deque[MemoryLease] = deque()

    async def take(self, demand: Demand, ahead: int, *, waits: bool = True) -> Lease | Wait:
        """As `LimitStore.take`."""
        with self._lock:
            scope = self._scopes.get(demand.scope)
            if scope is None:
                scope = self._scopes[demand.scope] = _Scope(self._span)
            now = self._clock()
            wait = scope.wait(demand, ahead, now)
            if wait is not None or ahead:
                return wait or Wait(0.0)
            lease = MemoryLease(self, demand, now)
            scope.take(lease)
        self._settle_dropped()
        return lease

    async def aclose(self) -> None:
        return None

    def settle(self, lease: MemoryLease, requests: int, tokens: int) -> None:
        """Corrects what a lease took."""
        with self._lock:
            if lease.settled:
                return
            lease.settled = True
            self._scopes[lease.demand.scope].settle(lease, requests, tokens, self._clock())
        self._freed(lease.demand.scope)
        self._settle_dropped()

    def drop(self, lease: MemoryLease) -> None:
        """Settles a lease from a finalizer, which may run while this very thread holds the lock."""
        self._dropped.append(lease)
        if self._lock.acquire(blocking=False):
            self._lock.release()
            self._settle_dropped()
        # Else whoever holds the lock looks at the dropped ones next.

    def _settle_dropped(self) -> None:
        while self._dropped:
            try:
                lease = self._dropped.popleft()
            except IndexError:  # another thread was quicker
                return
            self.settle(lease, 1, lease.demand.tokens)


class MemoryLease:
    """What one call has taken in a `MemoryStore`."""

    def __init__(self, store: MemoryStore, demand: Demand, taken: float) -> None:
        self._store = store
        self.demand = demand
        self.taken = taken
        self.entry: TokenEntry | None = None  # set once taken
        self.settled = False

    async def settle(self, requests: int, tokens: int) -> None:
        self._store.settle(self, requests, tokens)

    def drop(self) -> None:
        if not self.settled:
            self._store.drop(self)


class _Scope:
    """The state of one profile, or of one group of profiles."""

    def __init__(self, span: float) -> None:
        self._requests = RequestWindow(span)
        self._tokens = TokenWindow(span)
        self._slots = 0

    def wait(self, demand: Demand, ahead: int, now: float) -> Wait | None:
        """Why the demand cannot be met, None if it can."""
        self._requests.advance(now)
        self._tokens.advance(now)
        seconds = at_least = 0.0
        if demand.requests_per_minute is not None:
            seconds = at_least = self._requests.wait(ahead, demand.requests_per_minute, now)
        if demand.tokens_per_minute is not None:
            as_it_stands, certain = self._tokens.wait(demand.tokens, demand.tokens_per_minute, now)
            seconds, at_least = max(seconds, as_it_stands), max(at_least, certain)
        if demand.slots and demand.concurrency is not None and self._slots >= demand.concurrency:
            return Wait(None, at_least)
        return Wait(seconds, at_least) if seconds else None

    def take(self, lease: MemoryLease) -> None:
        self._requests.add(lease.taken)
        lease.entry = self._tokens.add(lease.demand.tokens, lease.taken)
        self._slots += lease.demand.slots

    def settle(self, lease: MemoryLease, requests: int, tokens: int, now: float) -> None:
        self._slots -= lease.demand.slots
        if not requests:
            self._requests.give_back(lease.taken)
        for _ in range(requests - 1):  # more were sent than was asked for
            self._requests.add(now)
        if lease.entry is not None:
            self._tokens.settle(lease.entry, tokens)
