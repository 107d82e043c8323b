"""What a store of the cache is: bytes under keys, kept for a while."""

from __future__ import annotations

from typing import Protocol

import msgspec

from lmclient.errors import LMClientError
from lmclient.settings import CacheSettings


class CacheError(LMClientError):
    """The store of the cache cannot be used: a full disk, no permission, no connection.

    A call never fails for it.
    """


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """How much a store holds. `place` is its directory or server, without a password."""

    place: str
    entries: int
    bytes: int


class Store(Protocol):
    """Keeps the JSON of answers. Its methods block, so they are called in threads.

    `workers` is how many threads may use it at once. Every method raises `CacheError` where the
    store cannot be used.
    """

    workers: int

    def get(self, key: str) -> bytes | None:
        """What was put under the key, None if nothing, or if it is too old."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Keeps the JSON, or leaves it if it is larger than the store may become."""
        ...

    def version(self) -> object | None:
        """Something that differs after every change by anybody, None where that cannot be told.

        The one method that an event loop may call: it is quick and raises nothing.
        """
        ...

    def contents(self) -> Contents:
        """How much there is."""
        ...

    def clear(self) -> int:
        """Removes all entries; returns how many."""
        ...

    def close(self) -> None:
        """Releases files and connections; a later call opens them again."""
        ...


def open_store(settings: CacheSettings) -> Store:
    """The store that the settings name. Nothing is read or connected before its first use.

    Raises `ConfigurationError` if its extra is not installed.
    """
    if settings.backend == "redis":
        from lmclient.cache.redis_store import RedisStore

        return RedisStore(settings)
    from lmclient.cache.disk_store import DiskStore

    return DiskStore(settings)
