"""The ledger: every attempt of every call, committed before the caller has the answer."""

from __future__ import annotations

import asyncio
import datetime
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import msgspec

from lmclient.core.money import EXACT
from lmclient.errors import ConfigurationError, LMClientError
from lmclient.profiles.secrets import public_url
from lmclient.spend.database import Database, Row, connect
from lmclient.spend.records import SpendRecord
from lmclient.spend.writer import Entry, Writer, unusable

T = TypeVar("T")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_PICO = Decimal(10**12)
_MAX_PICO = Decimal(2**63 - 1)
MAX_COUNT = 10**15
"""No provider counts more tokens; a number beyond it would not fit into every database."""

COLUMNS = (
    *("day", "currency", "time", "call_id", "attempt", "final"),
    *("category", "profile", "provider", "model"),
    *("input_tokens", "cached_input_tokens", "cache_write_tokens", "cache_write_1h_tokens"),
    *("output_tokens", "reasoning_tokens", "estimated", "inconsistent"),
    *("cost", "cost_pico", "cost_source", "saved_cost", "saved_pico"),
    *("duration", "waited", "time_to_first_token", "requests"),
    *("status", "finish_reason", "error", "http_status", "tags", "conversation_id"),
)
INSERT = (
    f"INSERT INTO lmclient_spend ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT DO NOTHING"
)
"""Books a row of `row_of`; one that is there stays as it is."""


class Ledger:
    """The ledger behind a `sqlite:///file` or `postgresql://…` URL.

    May be shared by tasks, threads and event loops; after a fork the child has a connection of its
    own. What is written passes one thread, whose commits take all that waits; nothing blocks an
    event loop.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._pid = 0
        self._writer = self._new_writer()
        self.is_open = False

    async def open(self) -> None:
        """Creates or updates the tables.

        Raises `ConfigurationError` if that is not possible, or if they cannot be written.
        """
        try:
            await self.run(_write_nothing)
        except ConfigurationError:
            raise
        except Exception as error:  # of two drivers, or already ours
            problem = error if isinstance(error, LMClientError) else unusable(public_url(self._url), error)
            raise ConfigurationError(
                f"{problem} Set spend.url to another one, or spend.enabled to false."
            ) from error
        self.is_open = True

    async def book(self, records: Sequence[SpendRecord]) -> None:
        """Returns once the records are committed.

        If the database cannot be written, an error is logged, the records are kept in memory and
        tried again: whoever has paid for an answer gets it.
        """
        if records:
            entry = Entry(rows=[row_of(record) for record in records])
            self._put(entry)
            await entry.future

    async def run(self, work: Callable[[Database], T]) -> T:
        """What `work` returns, which runs on the writing thread in a transaction of the ledger.

        Between processes, too, no other transaction runs at the same time in SQLite; in Postgres
        `work` takes the locks that it needs. It may be called again if the transaction fails. What
        it raises undoes what it did.
        """
        entry = Entry(work=work)
        self._put(entry)
        result: T = await entry.future
        return result

    async def read(self, query: Callable[[Database], T]) -> T:
        """What `query` returns, which runs on another thread with a connection of its own.

        Raises `ConfigurationError` if the ledger cannot be opened.
        """
        return await asyncio.to_thread(self._read, query)

    async def aclose(self) -> None:
        """Writes what waits, and closes the connection. A later call opens it again."""
        if self._pid == os.getpid():
            await asyncio.to_thread(self._writer.close)

    def _put(self, entry: Entry) -> None:
        if self._pid != os.getpid():
            self._renew()
        self._writer.put(entry)

    def _renew(self) -> None:
        """A writer of this process: the parent's thread does not exist here."""
        with self._lock:
            if self._pid != os.getpid():
                self._writer = self._new_writer()
                self._pid = os.getpid()

    def _new_writer(self) -> Writer:
        # The writer's thread does not hold the ledger, so that a forgotten one ends its thread.
        writer = Writer(partial(connect, self._url), public_url(self._url), INSERT)
        weakref.finalize(self, writer.end).atexit = False
        return writer

    def _read(self, query: Callable[[Database], T]) -> T:
        database = connect(self._url)
        try:
            with database.transaction(write=False):
                return query(database)
        except Exception as error:  # of two drivers; what is not theirs goes on as it is
            if not database.may_pass(error):
                raise
            raise unusable(database.name, error) from error
        finally:
            database.close()


def _write_nothing(database: Database) -> None:
    """Work that fails if rows cannot be written; that a transaction begins says nothing in SQLite."""
    database.execute("INSERT INTO lmclient_spend SELECT * FROM lmclient_spend WHERE 1 = 0")


def row_of(record: SpendRecord) -> Row:
    """The record as a row, in the order of `COLUMNS`."""
    time = record.time
    counts: tuple[int, ...] = (
        record.input_tokens,
        record.cached_input_tokens,
        record.cache_write_tokens,
        record.cache_write_1h_tokens,
        record.output_tokens,
        record.reasoning_tokens,
    )
    if max(counts) > MAX_COUNT:
        counts = tuple(min(count, MAX_COUNT) for count in counts)
    return (
        time.astimezone(datetime.UTC).date().isoformat(),
        storable(record.currency),
        (time - EPOCH) // _MICROSECOND,
        record.call_id,
        record.attempt,
        int(record.final),
        storable(record.category),
        storable(record.profile),
        storable(record.provider),
        storable(record.model),
        *counts,
        int(record.estimated),
        int(record.inconsistent),
        *_money(record.cost),
        record.cost_source,
        *_money(record.saved_cost),
        record.duration,
        record.waited,
        record.time_to_first_token,
        record.requests,
        record.status,
        record.finish_reason,
        record.error,
        record.http_status,
        _tags(record.tags),
        storable(record.conversation_id),
    )


def _money(amount: Decimal | None) -> tuple[str | None, int | None]:
    """The amount as text, and in units of 10^-12 if it is a whole number of them that fits."""
    if amount is None:
        return None, None
    pico = EXACT.multiply(amount, _PICO)
    whole = int(pico) if abs(pico) <= _MAX_PICO else None
    return format(amount, "f"), whole if whole == pico else None


def _tags(tags: dict[str, str]) -> str:
    if not tags:
        return "{}"
    clean = {storable(str(name)): storable(str(value)) for name, value in tags.items()}
    return msgspec.json.encode(clean).decode()


def storable(text: Any) -> Any:
    """The text without what a database refuses: half characters, and NUL in Postgres."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "�").encode("utf-8", "replace").decode()
