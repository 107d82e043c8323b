"""The chain of interceptors that the settings describe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from lmclient.core.request import CompletionRequest
from lmclient.interceptors.base import Interceptor
from lmclient.interceptors.circuit import CircuitBreakerInterceptor
from lmclient.interceptors.fallback import FallbackInterceptor
from lmclient.interceptors.loading import load_interceptor
from lmclient.interceptors.logging import LogInterceptor
from lmclient.interceptors.rate_limit import RateLimitInterceptor
from lmclient.interceptors.retry import RetryInterceptor
from lmclient.interceptors.spend import SpendInterceptor
from lmclient.settings import Settings
from lmclient.spend.ledger import Ledger

if TYPE_CHECKING:
    from lmclient.interceptors.budget import BudgetInterceptor


def default_interceptors(
    settings: Settings, fingerprint: Callable[[CompletionRequest], str]
) -> list[Interceptor]:
    """The built-in interceptors, outermost first, with those that the settings name inside of spend.

    `fingerprint` tells requests apart for the cache. Raises `ConfigurationError` for a named one that
    cannot be loaded.
    """
    named = [load_interceptor(path) for path in settings.interceptors]
    retry = settings.retry
    limits = RateLimitInterceptor(settings.rate_limit.storage_url, max_wait=retry.max_wait)
    assert settings.spend.url is not None  # filled in by the settings
    ledger = Ledger(settings.spend.url)
    budgets = _budgets(settings, ledger)
    return [
        LogInterceptor(),
        *_telemetry(named),
        *([SpendInterceptor(ledger)] if settings.spend.enabled else []),
        *named,
        *_cache(settings, fingerprint),
        FallbackInterceptor(),
        *budgets,
        limits,
        CircuitBreakerInterceptor(),
        RetryInterceptor(attempts=retry.attempts, max_wait=retry.max_wait),
        limits.retries,
        *(budget.retries for budget in budgets),
    ]


def _telemetry(named: list[Interceptor]) -> list[Interceptor]:
    """Telemetry, where the application uses OpenTelemetry and has not named the interceptor itself."""
    if "opentelemetry.sdk" not in sys.modules:
        return []
    from lmclient.interceptors.telemetry import TelemetryInterceptor

    if any(isinstance(interceptor, TelemetryInterceptor) for interceptor in named):
        return []
    return [TelemetryInterceptor()]


def _budgets(settings: Settings, ledger: Ledger) -> list[BudgetInterceptor]:
    if not settings.spend.budgets:
        return []
    from lmclient.interceptors.budget import BudgetInterceptor

    return [BudgetInterceptor(settings.spend.budgets, ledger)]


def _cache(settings: Settings, fingerprint: Callable[[CompletionRequest], str]) -> list[Interceptor]:
    if not settings.cache.enabled:
        return []
    from lmclient.interceptors.cache import CacheInterceptor

    return [CacheInterceptor(settings.cache, fingerprint)]
