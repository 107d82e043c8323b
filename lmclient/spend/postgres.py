"""The ledger in Postgres, through psycopg 3 (extra `postgres`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import psycopg

from lmclient.profiles.secrets import public_url
from lmclient.spend.database import Row

CONNECT_TIMEOUT = 10
"""Seconds, where the URL does not say."""
_CAN_PASS = ("25006", "42P01", "42501")
"""Read-only (a standby after a failover), no such table, no right to it: what an administrator mends."""
_TOO_LARGE = "54"
"""The class of what exceeds a limit of Postgres, such as a key too long for an index; it stays so."""
_LOCK = 0x6C6D636C  # "lmcl": any number that other programs do not use


class PostgresDatabase:
    """A connection that is made anew once it was lost."""

    type_names = {"decimal": "NUMERIC", "clustered": ""}  # noqa: RUF012  # part of a protocol

    def __init__(self, url: str) -> None:
        self.name = public_url(url)
        self._url = url
        self._connection: psycopg.Connection[Row] | None = None

    def tag(self, name: str) -> tuple[str, str]:
        return "(tags::jsonb ->> ?)", name

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[None]:
        connection = self._connected()
        with connection.transaction():
            if not write:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        assert self._connection is not None
        with self._connection.transaction():
            yield

    def lock(self) -> None:
        self.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")

    def has_table(self, name: str) -> bool:
        return bool(self.execute("SELECT to_regclass(?) IS NOT NULL", (name,))[0][0])

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        assert self._connection is not None
        cursor = self._connection.execute(_query(statement), parameters)
        return [] if cursor.description is None else cursor.fetchall()

    def execute_many(self, statement: str, rows: Sequence[Row]) -> None:
        assert self._connection is not None
        with self._connection.cursor() as cursor:
            cursor.executemany(_query(statement), rows)

    def insert(self, statement: str, rows: Sequence[Row]) -> None:
        with self.transaction():
            self.execute_many(statement, rows)

    def may_pass(self, error: BaseException) -> bool:
        if not isinstance(error, psycopg.Error):
            return False
        state = error.sqlstate or ""
        if state in _CAN_PASS:
            return True
        return isinstance(error, psycopg.OperationalError) and not state.startswith(_TOO_LARGE)

    def is_in_place(self) -> bool:
        return True  # a server that goes away ends its connections

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> psycopg.Connection[Row]:
        if self._connection is None or self._connection.closed:
            options: dict[str, Any] = {} if "connect_timeout" in self._url else _DEFAULTS
            self._connection = psycopg.connect(self._url, autocommit=True, **options)
        return self._connection


_DEFAULTS = {"connect_timeout": CONNECT_TIMEOUT}


def _query(statement: str) -> Any:
    """The statement with the driver's placeholders; none of ours has a question mark in its text."""
    return cast(Any, statement.replace("%", "%%").replace("?", "%s"))
