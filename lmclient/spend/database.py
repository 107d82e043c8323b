"""What the ledger needs of a database, the same for SQLite and Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from lmclient.errors import ConfigurationError

Row = tuple[Any, ...]


class Database(Protocol):
    """A connection that opens itself for a transaction, and again after it was lost.

    For one thread at a time. Statements have `?` where a parameter stands, and run in a transaction.
    """

    @property
    def name(self) -> str:
        """The file or the URL, without a password."""
        ...

    @property
    def type_names(self) -> Mapping[str, str]:
        """What the database calls the types that a schema names in braces."""
        ...

    def tag(self, name: str) -> tuple[str, str]:
        """The value of a tag as an SQL expression, and the parameter in it."""
        ...

    def transaction(self, *, write: bool = True) -> AbstractContextManager[None]:
        """All or nothing. Without `write` it sees the ledger as it is at its start."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """A part of a transaction that is undone alone when it raises."""
        ...

    def lock(self) -> None:
        """Keeps other processes from doing the same until the transaction is over."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        ...

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Runs one statement; its rows."""
        ...

    def execute_many(self, statement: str, rows: Sequence[Row]) -> None:
        """Runs one statement for each row of parameters."""
        ...

    def insert(self, statement: str, rows: Sequence[Row]) -> None:
        """Runs one statement for each row of parameters, in a transaction of their own."""
        ...

    def may_pass(self, error: BaseException) -> bool:
        """Whether what failed with this error may work later: locked, full, read-only, not reachable."""
        ...

    def is_in_place(self) -> bool:
        """Whether the connection, if there is one, is to what a new one would be to: no file was replaced."""
        ...

    def close(self) -> None:
        """Closes the connection, if it is open."""
        ...


def connect(url: str) -> Database:
    """The ledger's database behind a `sqlite:///…` or `postgresql://…` URL, its tables up to date.

    Raises `ConfigurationError` naming it if it cannot be used.
    """
    from lmclient.spend.schema import migrate

    database = _database(url)
    try:
        migrate(database)
    except ConfigurationError:
        database.close()
        raise
    except Exception as error:  # the exceptions of two drivers, and OSError; all mean the same here
        database.close()
        raise ConfigurationError(
            f"The ledger {database.name} cannot be opened ({str(error).strip()}); set spend.url to another "
            "one, or spend.enabled to false."
        ) from error
    return database


def _database(url: str) -> Database:
    if url.startswith("sqlite:///"):
        from lmclient.spend.sqlite import SqliteDatabase

        return SqliteDatabase(url.removeprefix("sqlite:///"))
    if url.startswith("postgresql://"):
        try:
            from lmclient.spend.postgres import PostgresDatabase
        except ImportError as error:
            raise ConfigurationError(
                f"A ledger in Postgres needs the extra: pip install 'lmclient[postgres]' ({error})."
            ) from error
        return PostgresDatabase(url)
    raise ConfigurationError("spend.url must begin with sqlite:/// or postgresql://.")
