"""The ledger in a SQLite file."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lmclient.errors import ConfigurationError
from lmclient.spend.database import Row

BUSY_TIMEOUT = 5.0
"""Seconds that a transaction waits for those of other processes."""


class SqliteDatabase:
    """A file in WAL mode: readers and one writer do not wait for each other.

    A commit survives the death of the process; `synchronous=NORMAL` means that the last ones before
    a power failure may be lost, without harm to the file.
    """

    type_names = {"decimal": "TEXT", "clustered": "WITHOUT ROWID"}  # noqa: RUF012  # part of a protocol

    def __init__(self, path: str) -> None:
        if path in ("", ":memory:"):
            raise ConfigurationError("spend.url must name a file: sqlite:///ledger.sqlite3.")
        self.name = path
        self._connection: sqlite3.Connection | None = None
        self._path = path
        self._identity: tuple[int, int] | None = None
        self._in_use = threading.Lock()
        _known(self)

    def tag(self, name: str) -> tuple[str, str]:
        if json.dumps(name, ensure_ascii=False) == f'"{name}"':
            return "json_extract(tags, ?)", f'$."{name}"'
        # A path cannot name a key with a quote in it; this can, but takes longer.
        return "(SELECT value FROM json_each(tags) WHERE key = ?)", name

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[None]:
        with self._in_use:
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self.execute("ROLLBACK TO part")
            raise
        finally:
            self.execute("RELEASE part")

    def lock(self) -> None:
        pass  # BEGIN IMMEDIATE is the lock

    def has_table(self, name: str) -> bool:
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        assert self._connection is not None
        return self._connection.execute(statement, parameters).fetchall()

    def execute_many(self, statement: str, rows: Sequence[Row]) -> None:
        assert self._connection is not None
        self._connection.executemany(statement, rows)

    def insert(self, statement: str, rows: Sequence[Row]) -> None:
        if len(rows) != 1:
            with self.transaction():
                self.execute_many(statement, rows)
            return
        with self._in_use:  # a statement outside of a transaction commits by itself
            connection = self._connection or self._connected()
            connection.execute(statement, rows[0])

    def may_pass(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.OperationalError | OSError) or type(error) is sqlite3.DatabaseError

    def is_in_place(self) -> bool:
        return self._connection is None or _identity(self._path) == self._identity

    def close(self) -> None:
        with self._in_use:
            if not self.is_in_place():
                # SQLite would leave the log of a file that was moved behind, and with it the last rows.
                with contextlib.suppress(sqlite3.Error):
                    self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._disconnect()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _connect(self.name)
            self._path = os.path.abspath(self.name)
            self._identity = _identity(self._path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _connect(path: str) -> sqlite3.Connection:
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A fork closes the connection on the thread that forks; `_in_use` keeps threads apart.
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        _use_wal(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _identity(path: str) -> tuple[int, int] | None:
    """What tells the file at a path from others, None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _use_wal(connection: sqlite3.Connection) -> None:
    """Changing the mode does not wait for other processes that do the same; so it is done here."""
    ends = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
        time.sleep(0.02)


# Locks of POSIX belong to a process, but SQLite remembers in memory which it holds, and a forked child
# inherits that memory without the locks: it would write as if alone. So no connection lives through a
# fork; each is closed before it, and opened again when it is next needed.
_databases: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()
_held: list[SqliteDatabase] = []
_gate = threading.Lock()


def _known(database: SqliteDatabase) -> None:
    with _gate:
        if not _databases and hasattr(os, "register_at_fork") and not _hooked:
            os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
            _hooked.append(True)
        _databases.add(database)


_hooked: list[bool] = []


def _before_fork() -> None:
    _gate.acquire()
    for database in list(_databases):
        database._in_use.acquire()
        _held.append(database)
        database._disconnect()


def _after_fork() -> None:
    while _held:
        _held.pop()._in_use.release()
    _gate.release()
