"""The chain of interceptors that the settings describe."""

from __future__ import annotations

from collections.abc import Callable

from lmclient.core.request import CompletionRequest
from lmclient.interceptors.base import Interceptor
from lmclient.interceptors.rate_limit import RateLimitInterceptor
from lmclient.interceptors.retry import RetryInterceptor
from lmclient.interceptors.spend import SpendInterceptor
from lmclient.settings import Settings
from lmclient.spend.ledger import Ledger


def default_interceptors(
    settings: Settings, fingerprint: Callable[[CompletionRequest], str]
) -> list[Interceptor]:
    """The built-in interceptors, outermost first. `fingerprint` tells requests apart for the cache."""
    spend: list[Interceptor] = []
    if settings.spend.enabled:
        assert settings.spend.url is not None  # filled in by the settings
        spend.append(SpendInterceptor(Ledger(settings.spend.url)))
    retry = settings.retry
    return [
        *spend,
        RateLimitInterceptor(),
        RetryInterceptor(attempts=retry.attempts, max_wait=retry.max_wait),
    ]
