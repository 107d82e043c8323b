"""The chain of interceptors that the settings describe."""

from __future__ import annotations

from collections.abc import Callable

from lmclient.core.request import CompletionRequest
from lmclient.interceptors.base import Interceptor
from lmclient.interceptors.rate_limit import RateLimitInterceptor
from lmclient.interceptors.retry import RetryInterceptor
from lmclient.settings import Settings


def default_interceptors(
    settings: Settings, fingerprint: Callable[[CompletionRequest], str]
) -> list[Interceptor]:
    """The built-in interceptors, outermost first. `fingerprint` tells requests apart for the cache."""
    retry = settings.retry
    return [RateLimitInterceptor(), RetryInterceptor(attempts=retry.attempts, max_wait=retry.max_wait)]
