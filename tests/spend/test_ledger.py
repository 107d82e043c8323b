"""The ledger in SQLite and Postgres: what is booked is there, exactly, whoever writes it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from lmclient import ConfigurationError, Ledger
from lmclient.errors import LMClientError
from lmclient.spend.client import AsyncSpend
from lmclient.spend.database import Database

from .making import NOON, record

END_OTHER_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def test_record_comes_back_as_it_was_booked(ledger: Ledger, spend: AsyncSpend) -> None:
    booked = record(
        category="m",
        attempt=3,
        final=False,
        input_tokens=1000,
        cached_input_tokens=200,
        cache_write_tokens=300,
        cache_write_1h_tokens=100,
        output_tokens=50,
        reasoning_tokens=20,
        estimated=True,
        inconsistent=True,
        cost=Decimal("0.0000001234"),
        currency="EUR",
        cost_source="profile",
        saved_cost=Decimal("1.5"),
        duration=1.25,
        waited=0.5,
        time_to_first_token=0.125,
        requests=1,
        status="failed",
        finish_reason=None,
        error="ServerError",
        http_status=503,
        tags={"user": "42", "team": "ä"},
        conversation_id="c-1",
        time=NOON + datetime.timedelta(microseconds=1),
    )
    await ledger.book([booked])
    assert await spend.records() == [booked]


async def test_newest_records_come_first(ledger: Ledger, spend: AsyncSpend) -> None:
    days = [record(time=NOON + datetime.timedelta(days=day)) for day in (2, 0, 1)]
    await ledger.book(days)
    assert [one.time.day for one in await spend.records(limit=2)] == [16, 15]


@pytest.mark.parametrize(
    "costs",
    [
        ["0.1", "0.2"],
        ["0.0000001234"] * 3,
        ["0.00000000000000000001", "1"],
        ["12345678901234567890", "0.5"],
        ["9000000"] * 5,
        ["1E-7", "1.10"],
    ],
)
async def test_sums_are_exact(ledger: Ledger, spend: AsyncSpend, costs: list[str]) -> None:
    await ledger.book([record(cost=Decimal(cost), cost_source="profile") for cost in costs])
    assert await spend.total() == {"USD": sum(map(Decimal, costs))}


async def test_unknown_costs_are_none_and_not_zero(ledger: Ledger, spend: AsyncSpend) -> None:
    await ledger.book([record(input_tokens=10, cost=None)])
    (row,) = await spend.report([])
    assert (row.cost, row.unpriced) == (None, 1)
    assert await spend.total() == {}


async def test_text_that_a_database_refuses_is_replaced(ledger: Ledger, spend: AsyncSpend) -> None:
    await ledger.book([record(model="m\0\ud800", tags={"user\0": "\udfff"})])
    (row,) = await spend.records()
    assert (row.model, row.tags) == ("m�?", {"user�": "?"})


async def test_row_that_is_booked_twice_is_there_once(ledger: Ledger, spend: AsyncSpend) -> None:
    same = record(cost=Decimal(1))
    await ledger.book([same])
    await ledger.book([same])
    assert len(await spend.records()) == 1


async def test_calls_at_once_are_all_booked(ledger: Ledger, spend: AsyncSpend) -> None:
    await asyncio.gather(*(ledger.book([record(cost=Decimal("0.001"))]) for _ in range(500)))
    assert await spend.total() == {"USD": Decimal("0.5")}


async def test_record_that_cannot_be_written_does_not_take_others_with_it(
    ledger: Ledger, spend: AsyncSpend, caplog: pytest.LogCaptureFixture
) -> None:
    await ledger.open()
    broken = record(requests=2**80)
    await asyncio.gather(*(ledger.book([one]) for one in (record(), broken, record())))
    assert len(await spend.records()) == 2
    assert "cannot be written" in caplog.text


async def test_work_that_raises_is_undone_and_tells_its_caller(ledger: Ledger, spend: AsyncSpend) -> None:
    def work(database: Database) -> None:
        database.execute("DELETE FROM lmclient_spend")
        raise LMClientError("no")

    await ledger.book([record()])
    results = await asyncio.gather(ledger.run(work), ledger.book([record()]), return_exceptions=True)
    assert isinstance(results[0], LMClientError)
    assert len(await spend.records()) == 2


def counts(database: Database) -> int:
    rows: list[tuple[int]] = database.execute("SELECT COUNT(*) FROM lmclient_spend")
    return rows[0][0]


async def test_work_that_the_database_fails_on_does_not_take_others_with_it(
    ledger: Ledger, spend: AsyncSpend
) -> None:
    def fails(database: Database) -> None:
        database.execute("DELETE FROM no_such_table")

    await ledger.open()
    results = await asyncio.gather(
        *(ledger.run(work) for work in (counts, fails, counts)),
        ledger.book([record()]),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [int, LMClientError, int, type(None)]
    assert len(await spend.records()) == 1


async def test_key_that_is_too_long_for_an_index_does_not_take_others_with_it(postgres_url: str) -> None:
    def inserts(database: Database) -> None:
        key = os.urandom(10_000).hex()
        database.execute("INSERT INTO lmclient_budget (budget, spent, warned) VALUES (?, 0, 0)", (key,))

    ledger = Ledger(postgres_url)
    await ledger.open()
    results = await asyncio.gather(
        *(ledger.run(work) for work in (counts, inserts, counts, inserts, inserts, counts)),
        return_exceptions=True,
    )
    await ledger.aclose()
    assert [isinstance(result, Exception) for result in results] == [False, True, False, True, True, False]


def test_several_event_loops_share_a_ledger(url: str) -> None:
    ledger = Ledger(url)

    async def book() -> None:
        for _ in range(20):
            await ledger.book([record(cost=Decimal(1))])

    threads = [threading.Thread(target=asyncio.run, args=(book(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asyncio.run(AsyncSpend(ledger).total()) == {"USD": 80}
    asyncio.run(ledger.aclose())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_children_book_beside_their_parent(url: str) -> None:
    ledger = Ledger(url)

    async def book(number: int) -> None:
        for _ in range(number):
            await ledger.book([record(call_id=os.urandom(8).hex(), cost=Decimal(1))])

    asyncio.run(book(3))
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            asyncio.run(book(10))
            os._exit(0)
        children.append(pid)
        asyncio.run(book(10))
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    assert asyncio.run(AsyncSpend(ledger).total()) == {"USD": 83}
    asyncio.run(ledger.aclose())


async def test_closed_ledger_opens_again(ledger: Ledger, spend: AsyncSpend) -> None:
    await ledger.book([record()])
    await ledger.aclose()
    await ledger.book([record()])
    assert len(await spend.records()) == 2


async def test_ledger_that_cannot_be_opened_names_its_file(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    file.write_bytes(b"this is no database, but it is long enough to look like one" * 20)
    with pytest.raises(ConfigurationError, match=str(file)):
        await Ledger(f"sqlite:///{file}").open()


async def test_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(ConfigurationError, match=r"127\.0\.0\.1:1/spend") as caught:
        await Ledger("postgresql://me:hunter2@127.0.0.1:1/spend").open()
    assert "hunter2" not in str(caught.value)


async def test_rows_are_kept_while_the_file_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lmclient.spend.sqlite.BUSY_TIMEOUT", 0.01)
    file = tmp_path / "ledger.sqlite3"
    ledger = Ledger(f"sqlite:///{file}")
    await ledger.open()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.ERROR):
        await ledger.book([record()])
    other.execute("ROLLBACK")
    other.close()
    assert "cannot be used now: database is locked" in caplog.text
    await ledger.book([record()])
    assert len(await AsyncSpend(ledger).records()) == 2
    await ledger.aclose()


async def test_kept_rows_are_written_when_the_ledger_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmclient.spend.sqlite.BUSY_TIMEOUT", 0.01)
    file = tmp_path / "ledger.sqlite3"
    ledger = Ledger(f"sqlite:///{file}")
    await ledger.open()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await ledger.book([record()])
    other.execute("ROLLBACK")
    other.close()
    await ledger.aclose()
    assert len(await AsyncSpend(ledger).records()) == 1


async def test_lost_connection_is_made_anew(postgres_url: str) -> None:
    import psycopg

    ledger = Ledger(postgres_url)
    await ledger.book([record()])
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(END_OTHER_SESSIONS)
    await ledger.book([record()])
    assert len(await AsyncSpend(ledger).records()) == 2
    await ledger.aclose()


@contextlib.contextmanager
def read_only(postgres_url: str) -> Iterator[None]:
    """The server ends all sessions and takes no writes, as a standby does."""
    import psycopg

    with psycopg.connect(f"{postgres_url}%20-cdefault_transaction_read_only%3Doff", autocommit=True) as admin:
        admin.execute("ALTER ROLE lmclient SET default_transaction_read_only = on")
        admin.execute(END_OTHER_SESSIONS)
        try:
            yield
        finally:
            admin.execute("ALTER ROLE lmclient RESET default_transaction_read_only")
            admin.execute(END_OTHER_SESSIONS)


async def test_rows_are_kept_while_the_server_is_read_only(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(postgres_url)
    await ledger.book([record()])
    with read_only(postgres_url):
        await ledger.book([record()])
        with pytest.raises(LMClientError, match="read-only"):
            await ledger.run(lambda database: database.execute("DELETE FROM lmclient_budget"))
        assert "kept in memory and tried again: 1" in caplog.text
        assert len(await AsyncSpend(ledger).records()) == 1
    await ledger.book([record()])
    assert len(await AsyncSpend(ledger).records()) == 3
    await ledger.aclose()


async def test_rows_are_kept_while_there_are_no_tables(postgres_url: str) -> None:
    import psycopg

    ledger = Ledger(postgres_url)
    await ledger.book([record()])
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        tables = admin.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        ).fetchall()
        for (table,) in tables:
            admin.execute(f"DROP TABLE {table}")
    await ledger.book([record()])
    await ledger.book([record()])
    assert len(await AsyncSpend(ledger).records()) == 2
    await ledger.aclose()


async def test_rows_are_kept_while_the_right_to_write_them_is_missing(postgres_url: str) -> None:
    import psycopg

    role = f"limited_{os.urandom(8).hex()}"
    owner, ledger = Ledger(postgres_url), Ledger(f"{postgres_url}%20-crole%3D{role}")
    await owner.book([record()])
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        schema = admin.execute("SELECT current_schema()").fetchall()[0][0]
        admin.execute(f"CREATE ROLE {role}")
        admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
        with pytest.raises(ConfigurationError, match="permission denied"):
            await ledger.open()
        await ledger.book([record()])
        admin.execute(f"GRANT INSERT ON lmclient_spend TO {role}")
    await ledger.open()
    assert len(await AsyncSpend(ledger).records()) == 2
    await owner.aclose()
    await ledger.aclose()


async def test_file_that_is_read_only_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    ledger = Ledger(f"sqlite:///{file}")
    await ledger.book([record()])
    await ledger.aclose()
    with file.open("r+b") as opened:  # a file format that this SQLite may read and not write
        opened.seek(18)
        opened.write(b"\x03")
    with pytest.raises(ConfigurationError, match=f"{file} cannot be used now: .*readonly"):
        await Ledger(f"sqlite:///{file}").open()
    assert len(await AsyncSpend(ledger).records()) == 1


async def test_reading_does_not_wait_for_those_who_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmclient.spend.sqlite.BUSY_TIMEOUT", 0.01)
    file = tmp_path / "ledger.sqlite3"
    ledger = Ledger(f"sqlite:///{file}")
    await ledger.book([record()])
    await ledger.aclose()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert len(await AsyncSpend(ledger).records()) == 1
    other.execute("ROLLBACK")
    other.close()


def remove(file: Path) -> None:
    for one in file.parent.glob(f"{file.name}*"):
        one.unlink()


async def test_file_that_was_moved_keeps_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmclient.spend.writer.LOOK_EVERY", 0)
    file, moved = tmp_path / "ledger.sqlite3", tmp_path / "moved"
    ledger = Ledger(f"sqlite:///{file}")
    for _ in range(3):
        await ledger.book([record()])
    file.rename(moved)
    await ledger.book([record()])
    await ledger.book([record()])
    await ledger.aclose()
    assert len(await AsyncSpend(Ledger(f"sqlite:///{moved}")).records()) == 3
    assert len(await AsyncSpend(Ledger(f"sqlite:///{file}")).records()) == 2


@pytest.mark.parametrize("restored", [False, True])
async def test_file_that_was_removed_or_replaced_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, restored: bool
) -> None:
    monkeypatch.setattr("lmclient.spend.writer.LOOK_EVERY", 0)
    file, backup = tmp_path / "ledger.sqlite3", tmp_path / "backup"
    ledger, saved = Ledger(f"sqlite:///{file}"), Ledger(f"sqlite:///{backup}")
    await ledger.book([record()])
    await saved.book([record()])
    await saved.aclose()
    remove(file)
    if restored:
        backup.rename(file)
    await ledger.book([record()])
    await ledger.book([record()])
    assert len(await AsyncSpend(ledger).records()) == (3 if restored else 2)
    assert caplog.text.count("was removed or replaced") == 1
    await ledger.aclose()
