"""The cache on Redis, shared by machines. Extra `redis`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from lmclient.cache.store import CacheError, Contents
from lmclient.errors import ConfigurationError
from lmclient.profiles.secrets import public_url
from lmclient.settings import CacheSettings

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as missing:
    raise ConfigurationError(
        "cache.backend is 'redis', which needs the extra: pip install 'lmclient[redis]'."
    ) from missing

PREFIX = "lmclient:completion:"
CONNECT = 1.0
"""Seconds to wait for a connection."""
ANSWER = 2.0
"""Seconds to wait for an answer of the server."""
BATCH = 500

_logger = logging.getLogger("lmclient.cache")


class RedisStore:
    """The keys below `lmclient:completion:` of one Redis database; each ends after `settings.ttl`.

    How much all of them may take is for the server's `maxmemory` to say.
    """

    workers = 4

    def __init__(self, settings: CacheSettings) -> None:
        url = str(settings.redis_url)
        self._place = public_url(url)
        self._ttl = max(1, round(settings.ttl * 1000))
        self._size_limit = settings.size_limit
        try:
            pool = redis.ConnectionPool.from_url(
                url,
                socket_connect_timeout=CONNECT,
                socket_timeout=ANSWER,
                # For a connection that the server closed meanwhile; one that does not answer is given up.
                retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),
            )
            # A URL may ask for text, which not all bytes are.
            pool.connection_kwargs.update(decode_responses=False, encoding="utf-8")
            pool.connection_class(**pool.connection_kwargs)  # complains of options that do not exist
        except (TypeError, ValueError, redis.RedisError) as error:
            raise ConfigurationError(f"cache.redis_url is {self._place}: {error}.") from error
        self._redis = redis.Redis.from_pool(pool)

    def get(self, key: str) -> bytes | None:
        with self._unavailable():
            try:
                value = self._redis.get(PREFIX + key)
            except redis.ResponseError as error:
                if not str(error).startswith("WRONGTYPE"):
                    raise
                _logger.warning("An entry of the cache at %s is unreadable (%s).", self._place, error)
                return None
        assert not isinstance(value, str)  # it reads no text
        return value

    def put(self, key: str, value: bytes) -> None:
        if len(value) <= self._size_limit:
            with self._unavailable():
                self._redis.set(PREFIX + key, value, px=self._ttl)

    def version(self) -> None:
        return None

    def contents(self) -> Contents:
        entries = size = 0
        with self._unavailable():
            for names in self._batches():
                entries += len(names)
                pipeline = self._redis.pipeline(transaction=False)
                for name in names:
                    pipeline.memory_usage(name)
                size += sum(used or 0 for used in pipeline.execute())
        return Contents(place=self._place, entries=entries, bytes=size)

    def clear(self) -> int:
        removed = 0
        with self._unavailable():
            for names in self._batches():
                removed += int(self._redis.unlink(*names))
        return removed

    def close(self) -> None:
        self._redis.close()

    def _batches(self) -> Iterator[list[bytes]]:
        names: set[bytes] = set()
        for name in self._redis.scan_iter(match=f"{PREFIX}*", count=BATCH):
            names.add(name)
            if len(names) == BATCH:
                yield [*names]
                names.clear()
        if names:
            yield [*names]

    @contextlib.contextmanager
    def _unavailable(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as error:
            raise CacheError(f"The cache at {self._place} cannot be used: {error}.") from error
