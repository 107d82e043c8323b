"""What the ledger costs: rows per second, CPU per call of the default chain, and a report by day.

    python tests/benchmarks/bench_spend.py

Exits with 1 if a limit is not kept.
"""

from __future__ import annotations

import asyncio
import datetime
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path

from measuring import compare, mock_server

import lmclient
from lmclient.spend.client import AsyncSpend
from lmclient.spend.database import connect
from lmclient.spend.ledger import INSERT, row_of

SECONDS = 10.0
WRITERS = 200
ROWS_PER_SECOND = 5000
CALLS = 64
CHAIN_LIMIT = 250e-6
ROWS = 1_000_000
REPORT_LIMIT = 2.0
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def record(number: int, time: datetime.datetime) -> lmclient.SpendRecord:
    return lmclient.SpendRecord(
        call_id=secrets.token_hex(12),
        attempt=1,
        time=time,
        category="smlx"[number % 4],
        profile=f"profile{number % 5}",
        provider="openai-chat",
        model="mock",
        input_tokens=25 + number % 100,
        output_tokens=200,
        cost=Decimal("0.00000125") * (number % 1000),
        cost_source="profile",
        duration=0.5,
        finish_reason="stop",
        tags={"user": str(number % 50)},
    )


async def sustained(folder: Path) -> bool:
    """Rows per second that many callers book, each waiting for the commit of its own."""
    ledger = lmclient.Ledger(f"sqlite:///{folder / 'sustained.sqlite3'}")
    await ledger.open()
    ends = time.perf_counter() + SECONDS
    counts = [0] * WRITERS

    async def write(writer: int) -> None:
        while time.perf_counter() < ends:
            await ledger.book([record(counts[writer], datetime.datetime.now(datetime.UTC))])
            counts[writer] += 1

    await asyncio.gather(*map(write, range(WRITERS)))
    await ledger.aclose()
    rate = sum(counts) / SECONDS
    kept = rate >= ROWS_PER_SECOND
    print(f"booking: {rate:8.0f} rows per second, at least {ROWS_PER_SECOND}   {verdict(kept)}", flush=True)
    return kept


async def per_call(folder: Path) -> bool:
    """CPU that the default chain adds to a bare call, all threads together, the commit included."""
    settings = lmclient.Settings(data_dir=folder)
    with mock_server() as url:
        profile = lmclient.ModelProfile(
            provider="openai-chat", model="mock", url=url, api_key="sk-x", cost={"input": "1", "output": "2"}
        )
        async with (
            lmclient.AsyncClient(settings, interceptors=[]) as bare,
            lmclient.AsyncClient(settings) as full,
        ):

            async def call(client: lmclient.AsyncClient) -> None:
                await client.complete(profile, "Hello", tags={"user": "42"})

            async def one_by_one(client: lmclient.AsyncClient) -> None:
                for _ in range(CALLS):
                    await call(client)

            async def at_once(client: lmclient.AsyncClient) -> None:
                await asyncio.gather(*(call(client) for _ in range(CALLS)))

            kept = []
            for name, calls in (("one by one", one_by_one), (f"{CALLS} at once", at_once)):
                plain, ours, _ = await compare(partial(calls, bare), partial(calls, full))
                added = (ours - plain) / CALLS
                kept.append(added <= CHAIN_LIMIT)
                print(
                    f"default chain, {name}: adds {added * 1e6:.0f} µs to {plain / CALLS * 1e6:.0f} µs of a "
                    f"bare call, at most {CHAIN_LIMIT * 1e6:.0f}   {verdict(kept[-1])}",
                    flush=True,
                )
    return all(kept)


async def reports(folder: Path) -> bool:
    """Seconds of reports over a million rows of a hundred days."""
    url = f"sqlite:///{folder / 'reports.sqlite3'}"
    database = connect(url)

    def rows() -> Iterator[tuple[object, ...]]:
        for number in range(ROWS):
            yield row_of(record(number, START + datetime.timedelta(seconds=8.64 * number)))

    with database.transaction():
        database.execute_many(INSERT, rows())  # type: ignore[arg-type]  # an iterator will do for SQLite
    database.close()
    spend = AsyncSpend(lmclient.Ledger(url))
    kept = True
    for by in (["day"], ["profile"], ["day", "category", "tag:user"]):
        start = time.perf_counter()
        found = await spend.report(by)
        seconds = time.perf_counter() - start
        limit = f", at most {REPORT_LIMIT}" if by == ["day"] else ""
        if limit:
            kept = seconds <= REPORT_LIMIT
        print(
            f"report by {', '.join(by)}: {len(found)} rows in {seconds:.2f} s{limit}   {verdict(kept)}",
            flush=True,
        )
    return kept


def verdict(kept: bool) -> str:
    return "ok" if kept else "TOO SLOW"


async def main() -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return all([await sustained(folder), await per_call(folder), await reports(folder)])


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
