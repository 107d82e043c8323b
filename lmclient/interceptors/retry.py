"""Tries again what is safe to try again. The one owner of retries: no transport retries by itself."""

from __future__ import annotations

import asyncio
import random
import time

from lmclient.core.request import CompletionRequest
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

FIRST_WAIT = 0.5
"""Seconds before the first retry where the provider does not say; doubled with each further one."""
JITTER = 0.25
"""Seconds by which a wait that the provider asked for is stretched at most, so that callers spread."""


class RetryInterceptor(Forwarding):
    """Repeats a call that failed in a way that another try may cure.

    That is: no connection, a connection lost before the first chunk reached the caller, and the
    statuses 408, 409, 429, 5xx and 529, unless the provider says otherwise or the quota is used up.
    A wait that the provider asks for is kept; one longer than `max_wait` seconds, or than the call
    still has, ends the call at once with the error, whose `retry_after` says how long.
    """

    def __init__(self, attempts: int = 4, max_wait: float = 30.0) -> None:
        self._attempts = attempts
        self._max_wait = max_wait

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        waited, tries = 0.0, 0
        while True:
            made, tries = len(request.attempts), tries + 1
            try:
                return await call_next(request)
            except LMClientError as error:
                wait = self.wait(error, tries, request.deadline)
                if wait is None:
                    raise
            finally:
                for tried in request.attempts[made : made + 1] if waited else ():
                    tried.waited += waited
            waited = wait
            await asyncio.sleep(waited)

    def wait(self, error: LMClientError, tries: int, deadline: float | None) -> float | None:
        """Seconds to wait after so many tries, before the next one; None if there should be none.

        Also for calls that are no completion, such as the list of models.
        """
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


def is_retryable(error: LMClientError) -> bool:
    """Whether the same request may succeed when it is sent again, and is safe to send again."""
    if isinstance(error, ProviderError):
        if isinstance(error, QuotaExceededError) or error.retryable is False:
            return False
        return error.retryable is True or isinstance(error, RateLimitError | ServerError)
    return isinstance(error, ConnectError | StreamInterruptedError)
