"""Budgets of calls that are tried again, and what happens while the ledger cannot be written."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from lmclient import (
    AsyncCompletionStream,
    BudgetExceededError,
    BudgetInterceptor,
    Completion,
    CompletionRequest,
    ConfigurationError,
    Ledger,
    LMClientError,
    RetryInterceptor,
    ServerError,
    Settings,
)
from lmclient.default_chain import default_interceptors
from lmclient.interceptors.base import chain
from lmclient.settings import Budget

from .calls import Next, answer, answering, profile, request

PRICED = profile("priced", cost={"input": "0", "output": "1000"})
"""With max_tokens 100 a call may cost 0.1."""
TENTH = Decimal("0.1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def ledger(file: Path) -> AsyncIterator[Ledger]:
    ledger = Ledger(f"sqlite:///{file}")
    yield ledger
    await ledger.aclose()


def budget(ledger: Ledger, amount: str) -> BudgetInterceptor:
    return BudgetInterceptor([Budget(name="b", amount=Decimal(amount))], ledger)


def failing_first(cost: Decimal | None) -> tuple[Next, list[CompletionRequest]]:
    """A provider whose first answer breaks off and has cost something; the next one is whole."""
    whole, seen = answering(cost=TENTH)

    async def call_next(asked: CompletionRequest) -> AsyncCompletionStream:
        if seen:
            return await whole(asked)
        seen.append(asked)
        error = ServerError("broke off", status=503, retry_after=0.0)
        answer(asked, error=error).completion = Completion(cost=cost, profile=asked.profile.name)
        raise error

    return call_next, seen


async def tried(interceptor: BudgetInterceptor, call_next: Next) -> Completion:
    links = chain([interceptor, RetryInterceptor(), interceptor.retries], call_next)
    return await (await links(request(PRICED, max_tokens=100))).wait()


async def test_a_retry_of_a_try_that_was_paid_needs_room_of_its_own(ledger: Ledger) -> None:
    interceptor = budget(ledger, "0.15")
    call_next, seen = failing_first(cost=TENTH)
    with pytest.raises(BudgetExceededError, match=r"0\.1 are spent and 0 reserved") as caught:
        await tried(interceptor, call_next)
    assert len(seen) == 1
    assert isinstance(caught.value.__cause__, ServerError)
    assert caught.value.partial == Completion(cost=TENTH, profile="priced")
    with pytest.raises(BudgetExceededError, match=r"0\.1 are spent and 0 reserved"):
        await tried(interceptor, call_next)


async def test_both_tries_count_where_there_is_room_for_them(ledger: Ledger) -> None:
    interceptor = budget(ledger, "0.2")
    call_next, seen = failing_first(cost=TENTH)
    await tried(interceptor, call_next)
    assert len(seen) == 2
    with pytest.raises(BudgetExceededError, match=r"0\.2 are spent and 0 reserved"):
        await tried(interceptor, call_next)


@pytest.mark.parametrize("cost", [None, Decimal(0)])
async def test_a_retry_of_a_try_that_cost_nothing_needs_none(ledger: Ledger, cost: Decimal | None) -> None:
    interceptor = budget(ledger, "0.1")
    call_next, seen = failing_first(cost=cost)
    await tried(interceptor, call_next)
    assert len(seen) == 2


async def test_the_default_chain_checks_retries_too(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, spend={"budgets": [{"name": "b", "amount": "0.15"}]})
    interceptors = default_interceptors(settings, lambda asked: "")
    call_next, seen = failing_first(cost=TENTH)
    with pytest.raises(BudgetExceededError, match=r"0\.1 are spent and 0 reserved"):
        await (await chain(interceptors, call_next)(request(PRICED, max_tokens=100))).wait()
    assert len(seen) == 1
    for interceptor in interceptors:
        if isinstance(interceptor, BudgetInterceptor):
            await interceptor.aclose()


async def test_what_could_not_be_counted_is_counted_before_the_next_call(
    ledger: Ledger, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    interceptor = budget(ledger, "0.15")
    call_next, _ = answering(cost=TENTH)

    async def while_the_table_is_away(asked: CompletionRequest) -> AsyncCompletionStream:
        rename(file, "lmclient_budget", "away")
        return await call_next(asked)

    asked = request(PRICED, max_tokens=100)
    assert (await (await interceptor(asked, while_the_table_is_away)).wait()).cost == TENTH
    assert "What a call has cost (0.1 USD) cannot be counted in its budgets now" in caplog.text
    rename(file, "away", "lmclient_budget")
    with pytest.raises(BudgetExceededError, match=r"0\.1 are spent and 0 reserved"):
        await interceptor(request(PRICED, max_tokens=100), call_next)


async def test_what_could_not_be_counted_is_counted_when_the_client_is_closed(
    ledger: Ledger, file: Path
) -> None:
    interceptor = budget(ledger, "0.15")
    call_next, _ = answering(cost=TENTH)
    stream = await interceptor(request(PRICED, max_tokens=100), call_next)
    rename(file, "lmclient_budget", "away")
    await stream.wait()
    rename(file, "away", "lmclient_budget")
    await interceptor.aclose()
    with pytest.raises(BudgetExceededError, match=r"0\.1 are spent and 0 reserved"):
        await budget(ledger, "0.15")(request(PRICED, max_tokens=100), call_next)


def rename(file: Path, old: str, new: str) -> None:
    with sqlite3.connect(file) as database:
        database.execute(f"ALTER TABLE {old} RENAME TO {new}")
    database.close()


@pytest.fixture
async def elsewhere(
    ledger: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[sqlite3.Connection]:
    """Another program's connection to the ledger, for which nobody waits long."""
    monkeypatch.setattr("lmclient.spend.sqlite.BUSY_TIMEOUT", 0.01)
    await ledger.open()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


async def spent(ledger: Ledger) -> Decimal:
    rows = await ledger.read(lambda database: database.execute("SELECT spent FROM lmclient_budget"))
    return sum((Decimal(amount) for (amount,) in rows), Decimal(0))


async def test_a_try_counts_also_if_the_budgets_cannot_be_checked_before_the_next(
    ledger: Ledger, elsewhere: sqlite3.Connection
) -> None:
    interceptor = budget(ledger, "1")
    first, seen = failing_first(cost=TENTH)

    async def then_locked(asked: CompletionRequest) -> AsyncCompletionStream:
        try:
            return await first(asked)
        finally:
            elsewhere.execute("BEGIN IMMEDIATE")

    with pytest.raises(LMClientError, match="ledger") as caught:
        await tried(interceptor, then_locked)
    assert isinstance(caught.value.__cause__, ServerError)
    assert caught.value.partial == Completion(cost=TENTH, profile="priced")
    assert len(seen) == 1
    elsewhere.execute("ROLLBACK")
    await (await interceptor(request(PRICED, max_tokens=100), answering(cost=TENTH)[0])).wait()
    assert await spent(ledger) == 2 * TENTH


async def test_a_call_that_is_given_up_while_others_are_counted_loses_none(
    ledger: Ledger, elsewhere: sqlite3.Connection
) -> None:
    interceptor = budget(ledger, "1")
    streams = [await interceptor(request(PRICED, max_tokens=100), answering(cost=TENTH)[0]) for _ in range(3)]
    elsewhere.execute("BEGIN IMMEDIATE")
    for stream in streams:
        await stream.wait()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await interceptor(request(PRICED, max_tokens=100), answering(cost=TENTH)[0])
    elsewhere.execute("ROLLBACK")
    await (await interceptor(request(PRICED, max_tokens=100), answering(cost=TENTH)[0])).wait()
    await interceptor.aclose()
    assert await spent(ledger) == 4 * TENTH


async def test_the_check_ends_with_the_time_of_the_call(
    ledger: Ledger, elsewhere: sqlite3.Connection
) -> None:
    interceptor = budget(ledger, "0.1")
    elsewhere.execute("BEGIN IMMEDIATE")
    call_next, seen = answering(cost=TENTH)
    asked = request(PRICED, max_tokens=100, deadline=time.monotonic() + 0.05)
    with pytest.raises(TimeoutError, match=r"'priced'.*time ran out.*ledger"):
        await interceptor(asked, call_next)
    assert not seen
    elsewhere.execute("ROLLBACK")
    await interceptor.aclose()
    await (await budget(ledger, "0.1")(request(PRICED, max_tokens=100), call_next)).wait()


async def test_calls_beside_each_other_within_one_are_counted_once(ledger: Ledger) -> None:
    class Hedge:
        async def __call__(self, asked: CompletionRequest, call_next: Next) -> AsyncCompletionStream:
            first, second = await asyncio.gather(call_next(asked), call_next(asked))
            await first.wait()
            await second.wait()
            return AsyncCompletionStream.of(first.completion)

    asked = request(PRICED, max_tokens=100)
    links = chain([Hedge(), budget(ledger, "1")], answering(cost=TENTH)[0])
    await (await links(asked)).wait()
    assert await spent(ledger) == 2 * TENTH
    assert len(asked.attempts) == 2


def test_budgets_that_differ_in_their_amounts_alone_are_refused(file: Path) -> None:
    budgets = [Budget(name="b", amount=Decimal(1)), Budget(name="b", amount=Decimal(2), warn_at=0.5)]
    with pytest.raises(ConfigurationError, match="Two budgets called 'b'"):
        BudgetInterceptor(budgets, Ledger(f"sqlite:///{file}"))


async def test_a_raised_amount_is_warned_of_again(ledger: Ledger) -> None:
    told: list[Decimal] = []
    for amount in ("0.2", "0.5"):
        one = Budget(name="b", amount=Decimal(amount))
        interceptor = BudgetInterceptor([one], ledger, on_warning=lambda _, spent: told.append(spent))
        for _ in range(2):
            await (await interceptor(request(PRICED, max_tokens=100), answering(cost=TENTH)[0])).wait()
    assert told == [TENTH * 2, TENTH * 4]


async def test_another_call_within_a_call_is_no_try_of_it(ledger: Ledger) -> None:
    one = Budget(name="b", amount=Decimal(1), profile="priced")
    interceptor = BudgetInterceptor([one], ledger)
    inner, _ = answering(cost=Decimal("0.01"))
    other = chain([interceptor, RetryInterceptor(), interceptor.retries], inner)
    first, _ = failing_first(cost=TENTH)

    async def asking_another(asked: CompletionRequest) -> AsyncCompletionStream:
        stream = await first(asked)
        await (await other(request(profile("cheap")))).wait()
        return stream

    await tried(interceptor, asking_another)
    assert await spent(ledger) == 2 * TENTH


async def test_a_try_that_runs_beside_one_that_is_repeated_is_counted(ledger: Ledger) -> None:
    interceptor = budget(ledger, "1")
    repeated, failing = asyncio.Event(), failing_first(cost=TENTH)[0]

    async def hedge(asked: CompletionRequest, call_next: Next) -> AsyncCompletionStream:
        await asyncio.gather(call_next(asked), call_next(asked))
        return AsyncCompletionStream.of(Completion())

    calls = 0

    async def last(asked: CompletionRequest) -> AsyncCompletionStream:
        nonlocal calls
        calls += 1
        if calls > 1:
            stream = await failing(asked)
            repeated.set()
            return stream
        attempt = answer(asked)
        completion, attempt.completion = attempt.completion, None  # it has begun
        await repeated.wait()
        attempt.completion = msgspec.structs.replace(completion, cost=TENTH)
        return AsyncCompletionStream.of(attempt.completion)

    links = chain([interceptor, hedge, RetryInterceptor(), interceptor.retries], last)
    await (await links(request(PRICED, max_tokens=100))).wait()
    assert await spent(ledger) == 3 * TENTH
