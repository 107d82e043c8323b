"""Tries again what is safe to try again. The one owner of retries: no transport retries by itself."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lmclient.core.request import Attempt, CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import (
    ConnectError,
    LMClientError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from lmclient.interceptors.base import CallNext, Forwarding

T = TypeVar("T")
FIRST_WAIT = 0.5
"""Seconds before the first retry where the provider does not say; doubled with each further one."""
JITTER = 0.25
"""Seconds by which a wait that the provider asked for is stretched at most, so that callers spread."""


class RetryInterceptor(Forwarding):
    """Repeats a call that failed in a way that another try may cure.

    That is: no connection, a connection lost before the first chunk reached the caller, and the
    statuses 408, 409, 429, 5xx and 529, unless the provider says otherwise or the quota is used up.
    A wait that the provider asks for is kept; one longer than `max_wait` seconds, or than the call
    still has, ends the call at once with the error, whose `retry_after` says how long. A provider that
    asks for none, but says when there is something left of its limits, is waited for as well.
    """

    def __init__(self, attempts: int = 4, max_wait: float = 30.0) -> None:
        self._attempts = attempts
        self._max_wait = max_wait

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        async def attempt(waited: float) -> AsyncCompletionStream:
            made = len(request.attempts)
            try:
                return await call_next(request)
            except RateLimitError as error:
                if error.retry_after is None and (reset := _reset(request.attempts[made:])) <= self._max_wait:
                    error.retry_after = reset or None
                raise
            finally:
                for tried in request.attempts[made : made + 1]:
                    tried.waited += waited

        return await self.repeat(attempt, request.deadline)

    async def repeat(self, attempt: Callable[[float], Awaitable[T]], deadline: float | None = None) -> T:
        """What `attempt` gives, which is called with the seconds that were waited before.

        Also for calls that are no completion, such as the list of models.
        """
        waited, tries = 0.0, 1
        while True:
            try:
                return await attempt(waited)
            except LMClientError as error:
                wait = self._wait(error, tries, deadline)
                if wait is None:
                    raise
            waited, tries = wait, tries + 1
            await asyncio.sleep(waited)

    def _wait(self, error: LMClientError, tries: int, deadline: float | None) -> float | None:
        """Seconds to wait after so many tries; None if there should be none."""
        if tries >= self._attempts or not is_retryable(error):
            return None
        asked = error.retry_after if isinstance(error, ProviderError) else None
        if asked is None:
            wait: float = min(self._max_wait, FIRST_WAIT * 2.0 ** (tries - 1)) * random.uniform(0.5, 1.0)
        elif asked > self._max_wait:
            return None
        else:
            wait = asked + random.uniform(0.0, JITTER)
        if deadline is not None and time.monotonic() + wait >= deadline:
            return None
        return wait


def _reset(attempts: Sequence[Attempt]) -> float:
    """Seconds until the provider has something left of what the last attempt found used up, else 0."""
    said = attempts[-1].limits if attempts else None
    if said is None:
        return 0.0
    return max(
        (said.requests_reset or 0.0) if said.remaining_requests == 0 else 0.0,
        (said.tokens_reset or 0.0) if said.remaining_tokens == 0 else 0.0,
    )


def is_retryable(error: LMClientError) -> bool:
    """Whether the same request may succeed when it is sent again, and is safe to send again."""
    if isinstance(error, ProviderError):
        if isinstance(error, QuotaExceededError) or error.retryable is False:
            return False
        return error.retryable is True or isinstance(error, RateLimitError | ServerError)
    return isinstance(error, ConnectError | StreamInterruptedError)
