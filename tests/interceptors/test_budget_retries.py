"""Budgets of calls that are tried again, and of calls that could not be counted when they were over."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest

from lmclient import (
    AsyncCompletionStream,
    BudgetExceededError,
    BudgetInterceptor,
    Completion,
    CompletionRequest,
    Ledger,
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
