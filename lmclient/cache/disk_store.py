"""The cache on disk: diskcache, without its pickles."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import tempfile
import time
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
"""Seconds that opening the database, or a write, waits for another process."""

SMALLEST = 65_536
"""Bytes of a database with a few entries; under a smaller limit nearly nothing is kept."""

_FILES = (DBNAME, f"{DBNAME}-journal", f"{DBNAME}-wal", f"{DBNAME}-shm")
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

_TABLES = {
    "Settings": {"key", "value"},
    "Cache": {
        *("rowid", "key", "raw", "store_time", "expire_time", "access_time"),
        *("access_count", "tag", "size", "mode", "filename", "value"),
    },
}
"""The tables of diskcache, and their columns."""

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


class _Database(diskcache.Cache):  # type: ignore[misc]  # diskcache has no types
    """Gives up opening after `BUSY` seconds, where diskcache itself tries a locked database for a minute."""

    def __init__(self, directory: str, **options: Any) -> None:
        self._give_up: float | None = time.monotonic() + BUSY
        super().__init__(directory, **options)
        self._give_up = None

    @property
    def _sql(self) -> Any:
        return self._con.execute if self._give_up is None else self._execute

    def _execute(self, *statement: Any) -> Any:
        try:
            return self._con.execute(*statement)
        except sqlite3.OperationalError as error:
            if self._give_up is not None and time.monotonic() > self._give_up:
                raise diskcache.Timeout from error
            raise  # diskcache tries again if it is locked


class DiskStore:
    """A directory of `settings.dir`, shared by processes, of about `settings.size_limit` bytes at most.

    Only the user can read it. A database that is broken, or that is something else, is replaced
    with a warning; something else is kept beside it.
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
        if self._size_limit < SMALLEST:
            _logger.warning(
                "cache.size_limit is %d bytes, which an empty cache nearly takes by itself; set at least %d.",
                self._size_limit,
                SMALLEST,
            )
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
        entries = pages = page_size = 0
        with self._unavailable():
            if self._current_inode() is not None:
                with _looking_into(self._database) as database:
                    if (reason := _foreign(database)) is not None:
                        raise CacheError(f"The cache in {self._directory} cannot be used: {reason}.")
                    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'Cache'").fetchone():
                        ((entries,),) = database.execute("SELECT COUNT(*) FROM Cache")
                    ((pages,),) = database.execute("PRAGMA page_count")
                    ((page_size,),) = database.execute("PRAGMA page_size")
        return Contents(place=str(self._directory), entries=entries, bytes=pages * page_size)

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
                self._set_aside(error)
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
                if _is_unavailable(error):
                    raise
                raise _BrokenError(str(error)) from error

    def _open(self) -> Any:
        self._inode = self._current_inode()
        if self._inode is not None:
            with _looking_into(self._database) as database:
                if (reason := _foreign(database)) is not None:
                    raise _ForeignError(reason)
        _make_private(self._directory)
        self._inode = self._current_inode()
        cache: Any = _Database.__new__(_Database)
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

    def _set_aside(self, reason: _BrokenError) -> None:
        """Moves the database out of the way, unless another process has done so already."""
        self.close()
        if self._current_inode() != self._inode:
            return
        foreign = isinstance(reason, _ForeignError)
        aside = tempfile.mkdtemp(prefix="foreign-" if foreign else "broken-", dir=self._directory)
        for name in reversed(_FILES):
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._directory / name, Path(aside, name))
        if foreign:
            _logger.warning(
                "In place of the cache, %s: %s. It is kept in %s.", self._directory, reason, aside
            )
            return
        _logger.warning("The cache in %s is unreadable (%s); a new one is begun.", self._directory, reason)
        shutil.rmtree(aside, ignore_errors=True)

    def _current_inode(self) -> int | None:
        try:
            return self._database.stat().st_ino
        except FileNotFoundError:
            return None


class _BrokenError(Exception):
    """The database is not one of ours."""


class _ForeignError(_BrokenError):
    """It is somebody else's, and sound."""


@contextlib.contextmanager
def _looking_into(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, to be read; it has to be there."""
    # Not `mode=ro`, which would leave the files of a write-ahead log behind.
    location = f"{path.absolute().as_uri()}?mode=rw"
    with contextlib.closing(sqlite3.connect(location, uri=True, timeout=BUSY)) as database:
        yield database


def _foreign(database: sqlite3.Connection) -> str | None:
    """What shows that the database is sound and somebody else's, None if nothing does."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    try:
        for (name,) in database.execute(tables).fetchall():
            columns = _TABLES.get(name)
            if columns is None or columns != {
                row[1] for row in database.execute(f"PRAGMA table_info({name})")
            }:
                return f"its database has a table {name!r} that is none of a cache's"
    except sqlite3.Error as error:
        if _is_unavailable(error):
            raise
        return None  # broken, as opening it will tell
    return None


def _is_unavailable(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _UNAVAILABLE


def _make_private(directory: Path) -> None:
    """Makes the directory and the database in it readable to the user alone."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = directory / DBNAME
    if database.exists() or not any(directory.iterdir()):  # else it is somebody's for other things, too
        directory.chmod(0o700)
    database.touch(mode=0o600)
