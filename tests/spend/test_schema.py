"""Older ledgers become newer ones, once, and those of a newer lmclient stay as they are."""

from __future__ import annotations

import threading

import pytest

from lmclient import ConfigurationError, Ledger
from lmclient.spend import database, schema
from lmclient.spend.client import AsyncSpend
from lmclient.spend.database import Database

from .making import record

ADDED = (*schema.MIGRATIONS, ("ALTER TABLE lmclient_spend ADD COLUMN colour TEXT",))


def version(opened: Database) -> list[tuple[int, ...]]:
    with opened.transaction(write=False):
        return opened.execute("SELECT version FROM lmclient_schema ORDER BY version")


async def test_older_ledger_is_brought_up_to_date_with_its_rows(url: str, ledger: Ledger) -> None:
    await ledger.book([record()])
    opened = database.connect(url)
    schema.migrate(opened, ADDED)
    with opened.transaction(write=False):
        assert opened.execute("SELECT colour FROM lmclient_spend") == [(None,)]
    assert len(version(opened)) == len(ADDED)
    opened.close()


async def test_migration_that_fails_leaves_the_ledger_as_it_was(
    url: str, ledger: Ledger, spend: AsyncSpend
) -> None:
    await ledger.book([record()])
    opened = database.connect(url)
    before = version(opened)
    with pytest.raises(Exception, match="no_such_table"):
        schema.migrate(opened, (*ADDED, ("DROP TABLE no_such_table",)))
    assert version(opened) == before
    opened.close()
    assert len(await spend.records()) == 1


def test_ledger_of_a_newer_version_is_refused(url: str) -> None:
    opened = database.connect(url)
    with opened.transaction():
        opened.execute("INSERT INTO lmclient_schema (version) VALUES (99)")
    opened.close()
    with pytest.raises(ConfigurationError, match="newer version of lmclient"):
        database.connect(url)


def test_ledger_that_many_open_at_once_is_made_once(url: str) -> None:
    failures: list[BaseException] = []

    def open_it() -> None:
        try:
            database.connect(url).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    opened = database.connect(url)
    assert len(version(opened)) == len(schema.MIGRATIONS)
    opened.close()
