"""The cache on disk: diskcache, without its pickles."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import diskcache  # type: ignore[import-untyped]  # it has no types
from diskcache.core import DBNAME, MODE_RAW  # type: ignore[import-untyped]

from lmclient.cache.store import CacheError, Contents
from lmclient.errors import ConfigurationError
from lmclient.settings import CacheSettings

T = TypeVar("T")
BUSY = 5.0
"""Seconds that a write waits for another process."""

_FILES = (DBNAME, f"{DBNAME}-wal", f"{DBNAME}-shm")
_UNAVAILABLE = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_AUTH,
}
"""SQLite's codes for a file that is sound and cannot be used now; all others mean a broken one."""

_logger = logging.getLogger("lmclient.cache")


class JsonDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Carries text keys and the bytes of JSON, and refuses everything else.

    diskcache pickles what it does not know, and unpickling a file that somebody else wrote runs
    their code (CVE-2025-69872). Here a pickle is neither written nor read.
    """

    def put(self, key: object) -> tuple[str, bool]:
        if type(key) is not str:
            raise TypeError(f"a key of the cache is text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: bool) -> str:
        if type(key) is not str or not raw:
            raise TypeError("a key in the cache is not text")
        return key

    def store(
        self, value: object, read: bool, key: object = None
    ) -> tuple[int, int, str | None, bytes | None]:
        if type(value) is not bytes or read:
            raise TypeError(f"a value of the cache is JSON in bytes, not {type(value).__name__}")
        # Always inside the database, never in a file beside it: an entry is whole or not there.
        return 0, MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> bytes:
        if mode != MODE_RAW or filename is not None or type(value) is not bytes:
            raise TypeError("a value in the cache is not JSON in bytes")
        return value


_OPTIONS = {
    "timeout": BUSY,
    "disk": JsonDisk,
    "eviction_policy": "least-recently-stored",
    "statistics": 0,
    "tag_index": 0,
    # A file that somebody cuts short while it is mapped would end the process.
    "sqlite_mmap_size": 0,
}


class DiskStore:
    """A directory of `settings.dir`, shared by processes, at most `settings.size_limit` bytes.

    Only the user can read it. A database that is broken, or that is something else, is replaced
    with a warning.
    """

    workers = 1

    def __init__(self, settings: CacheSettings) -> None:
        if settings.dir is None:
            raise ConfigurationError("The cache needs a directory; set cache.dir.")
        self._directory = settings.dir
        self._database = Path(settings.dir, DBNAME)
        self._log = Path(settings.dir, f"{DBNAME}-wal")
        self._ttl = settings.ttl
        self._size_limit = settings.size_limit
        self._cache: Any = None
        self._pid = 0
        self._inode: int | None = None

    def get(self, key: str) -> bytes | None:
        try:
            value: bytes | None = self._do(lambda cache: cache.get(key))
        except TypeError as error:
            _logger.warning("An entry of the cache in %s is unreadable (%s).", self._directory, error)
            return None
        return value

    def put(self, key: str, value: bytes) -> None:
        if len(value) <= self._size_limit:
            self._do(lambda cache: cache.set(key, value, expire=self._ttl))

    def version(self) -> object | None:
        try:
            database, log = os.stat(self._database), os.stat(self._log)
        except OSError:
            return None  # without a write-ahead log nobody has the database open
        return (
            (database.st_ino, database.st_mtime_ns, database.st_size),
            (log.st_ino, log.st_mtime_ns, log.st_size),
        )

    def contents(self) -> Contents:
        def count(cache: Any) -> Contents:
            return Contents(place=str(self._directory), entries=len(cache), bytes=cache.volume())

        return self._do(count)

    def clear(self) -> int:
        return self._do(lambda cache: int(cache.clear()))

    def close(self) -> None:
        cache, self._cache = self._cache, None
        if cache is not None and self._pid == os.getpid():
            cache.close()

    def _do(self, work: Callable[[Any], T]) -> T:
        """What `work` gives; a broken database is replaced once by a new one."""
        try:
            return self._attempt(work)
        except _BrokenError as error:
            with self._unavailable():
                self._replace(error)
        try:
            return self._attempt(work)
        except _BrokenError as error:
            raise CacheError(f"The cache in {self._directory} cannot be used: {error}.") from error

    def _attempt(self, work: Callable[[Any], T]) -> T:
        with self._unavailable():
            try:
                if self._cache is None or self._pid != os.getpid():
                    self._cache, self._pid = self._open(), os.getpid()
                return work(self._cache)
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _UNAVAILABLE:
                    raise
                raise _BrokenError(str(error)) from error

    def _open(self) -> Any:
        _make_private(self._directory)
        self._inode = self._current_inode()
        cache: Any = diskcache.Cache.__new__(diskcache.Cache)
        try:
            cache.__init__(str(self._directory), size_limit=self._size_limit, **_OPTIONS)
        except Exception as error:
            cache.close()  # it has connected before it stumbled over what is in the file
            if isinstance(error, sqlite3.Error | OSError | diskcache.Timeout):
                raise
            # The file's own settings are taken over, so anything may be wrong.
            raise _BrokenError(f"{type(error).__name__}: {error}") from error
        return cache

    @contextlib.contextmanager
    def _unavailable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, diskcache.Timeout) as error:
            self.close()
            reason = str(error) or "it is locked by another process, or cannot be written"
            raise CacheError(f"The cache in {self._directory} cannot be used: {reason}.") from error

    def _replace(self, reason: Exception) -> None:
        """Moves the database out of the way, unless another process has done so already."""
        self.close()
        if self._current_inode() != self._inode:
            return
        _logger.warning("The cache in %s is unreadable (%s); a new one is begun.", self._directory, reason)
        aside = tempfile.mkdtemp(prefix="broken-", dir=self._directory)
        for name in reversed(_FILES):
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._directory / name, Path(aside, name))
        shutil.rmtree(aside, ignore_errors=True)

    def _current_inode(self) -> int | None:
        try:
            return self._database.stat().st_ino
        except FileNotFoundError:
            return None


class _BrokenError(Exception):
    """The database is not one of ours."""


def _make_private(directory: Path) -> None:
    """Makes the directory and the database in it readable to the user alone."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = directory / DBNAME
    if database.exists() or not any(directory.iterdir()):  # else it is somebody's for other things, too
        directory.chmod(0o700)
    database.touch(mode=0o600)
