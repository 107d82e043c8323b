"""Spares a provider that fails again and again, and its callers the waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import CircuitOpenError, ProviderError, ServerError, TimeoutError, TransportError
from lmclient.interceptors.base import CallNext, Forwarding

_Key = tuple[str, str, str]


class CircuitBreakerInterceptor(Forwarding):
    """Lets no call of a profile through for a while after `failures` calls in a row have failed.

    A failure is what another try later may cure: no connection, a timeout, an interrupted answer, a
    5xx; one call counts once, whatever retries it made. Any other answer of the server, such as a
    409, a 429 or a refused request, shows that it works. A call whose own time ran out tells nothing,
    since it may have had too little. After `rest` seconds one call may try: if its answer
    begins, all may again, and the next failure before a whole answer opens the circuit anew.

    Raises `CircuitOpenError`, which names the profile and says in `retry_after` when it tries again.
    Shared by event loops and threads; `clock` gives seconds.
    """

    def __init__(
        self, failures: int = 5, rest: float = 30.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._failures = failures
        self._rest = rest
        self._clock = clock
        self._lock = threading.Lock()
        self._circuits: dict[_Key, _Circuit] = {}

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        profile = request.profile
        key = (profile.name, profile.provider, profile.url)
        circuit = self._circuits.get(key)
        if circuit is None:
            circuit = self._circuits.setdefault(key, _Circuit())
        probing = circuit.open_until is not None and self._enter(circuit, profile.name)
        try:
            stream = await call_next(request)
        except BaseException as error:
            self._over(circuit, probing, error, request.deadline)
            raise
        if probing:
            self._close_on_probation(circuit)

        if stream.is_whole:
            self._over(circuit, False, None, None)
            return stream

        async def end(completion: Completion, error: BaseException | None) -> None:
            self._over(circuit, False, error, request.deadline)

        stream.on_end(end)
        return stream

    def _enter(self, circuit: _Circuit, name: str) -> bool:
        """Whether this call is the one that tries whether the provider works again."""
        with self._lock:
            if circuit.open_until is None:
                return False
            left = circuit.open_until - self._clock()
            if left <= 0 and not circuit.probing:
                circuit.probing = True
                return True
        if left > 0:
            message = f"it failed {circuit.failures} times in a row and is tried again in {left:.1f} s"
        else:
            message = "it failed repeatedly, and another call is trying whether it works again"
        raise CircuitOpenError(f"Profile {name!r} rests: {message}.", retry_after=max(left, 0.0))

    def _close_on_probation(self, circuit: _Circuit) -> None:
        with self._lock:
            circuit.open_until = None
            circuit.probing = False
            circuit.failures = self._failures - 1

    def _over(
        self, circuit: _Circuit, probing: bool, error: BaseException | None, deadline: float | None
    ) -> None:
        """Takes in how a call ended. A cancelled one, or one never sent, tells nothing."""
        if error is None and not circuit.failures:
            return
        with self._lock:
            if probing:
                circuit.probing = False
            if _is_failure(error, deadline):
                circuit.failures += 1
                if circuit.failures >= self._failures and (probing or circuit.open_until is None):
                    circuit.open_until = self._clock() + self._rest
            elif (error is None or isinstance(error, ProviderError)) and (
                probing or circuit.open_until is None
            ):
                # What began before the circuit opened does not close it.
                circuit.failures = 0
                circuit.open_until = None


def _is_failure(error: BaseException | None, deadline: float | None) -> bool:
    """Whether it was the provider that failed."""
    if isinstance(error, ServerError):
        return error.status is None or error.status >= 500  # else a 408 or 409
    if isinstance(error, TimeoutError) and deadline is not None and time.monotonic() >= deadline:
        return False  # of this call alone
    return isinstance(error, TransportError)


class _Circuit:
    """How the last calls of one profile went."""

    __slots__ = ("failures", "open_until", "probing")

    def __init__(self) -> None:
        self.failures = 0
        self.open_until: float | None = None
        self.probing = False
