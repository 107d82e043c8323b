"""Finds the store behind a `storage_url`."""

from __future__ import annotations

from collections.abc import Callable

from lmclient.errors import ConfigurationError
from lmclient.limits.base import LimitStore
from lmclient.limits.memory import MemoryStore

StoreFactory = Callable[[Callable[[str], None]], LimitStore]
"""Makes a store that calls back with a scope when something of it was given back."""


def store_at(url: str, clock: Callable[[], float]) -> StoreFactory:
    """What makes the store behind `memory://` or `redis://…`. Nothing is connected yet.

    Raises `ConfigurationError` for another URL, or if the extra for Redis is missing.
    """
    if url.startswith("memory://"):
        return lambda freed: MemoryStore(clock, freed)
    if not url.startswith(("redis://", "rediss://")):
        raise ConfigurationError("rate_limit.storage_url must begin with memory://, redis:// or rediss://.")
    try:
        from lmclient.limits.redis import RedisStore
    except ImportError as error:
        raise ConfigurationError(
            f"Limits on Redis need the extra: pip install 'lmclient[redis]' ({error})."
        ) from error
    return lambda freed: RedisStore(url, freed)
