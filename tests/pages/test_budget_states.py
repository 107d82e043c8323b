"""What is left of budgets, beside the interceptor that keeps them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lmclient import SpendRecord
from lmclient.server.pages.budget_states import BudgetState, budget_states
from lmclient.settings import Budget
from lmclient.spend.budgets import claims_on, reservation, reserve, settle
from lmclient.spend.ledger import Ledger

NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture
async def ledger(tmp_path: Path) -> Any:
    opened = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}")
    yield opened
    await opened.aclose()


def record(number: int, **values: Any) -> SpendRecord:
    given = {
        "call_id": f"call-{number}",
        "attempt": 1,
        "time": NOW,
        "profile": "mini",
        "provider": "openai-chat",
        "model": "mock",
        "cost": Decimal("0.5"),
    }
    return SpendRecord(**{**given, **values})


async def states(ledger: Ledger, *budgets: Budget) -> list[BudgetState]:
    return await ledger.read(budget_states(budgets, NOW))


async def test_a_budget_that_has_not_begun_counts_what_is_booked(ledger: Ledger) -> None:
    await ledger.book([record(1), record(2, profile="large"), record(3, currency="EUR")])
    budgets = Budget(name="a", amount="2"), Budget(name="b", amount="0.5", profile="mini", period="day")
    found = await states(ledger, *budgets)
    assert [(each.spent, each.state) for each in found] == [("1", "ok"), ("0.5", "spent")]


async def test_what_running_calls_hold_is_reserved_until_it_is_settled(ledger: Ledger) -> None:
    budget = Budget(name="a", amount="2")
    held = reservation(claims_on([budget], "mini", {}, NOW), Decimal("1.25"), "USD", "mini", 60)
    assert await ledger.run(reserve(held)) is None
    [running] = await states(ledger, budget)
    await ledger.run(settle(held, {"USD": Decimal("0.75")}))
    [settled] = await states(ledger, budget)
    assert [(each.spent, each.reserved) for each in (running, settled)] == [("0", "1.25"), ("0.75", "0")]


async def test_each_value_of_an_open_tag_has_a_state(ledger: Ledger) -> None:
    budget = Budget(name="each", amount="1", tags={"user": "*"})
    await ledger.book([record(1, tags={"user": "ann"}), record(2)])
    [booked] = await states(ledger, budget)
    held = reservation(claims_on([budget], "mini", {"user": "bob"}, NOW), Decimal("0.25"), "USD", "mini", 60)
    assert await ledger.run(reserve(held)) is None
    begun = await states(ledger, budget)
    assert (booked.tags, booked.spent) == ({"user": "ann"}, "0.5")
    assert [(each.tags["user"], each.spent, each.reserved) for each in begun] == [
        ("ann", "0.5", "0"),
        ("bob", "0", "0.25"),
    ]


async def test_budgets_of_one_name_are_kept_apart(ledger: Ledger) -> None:
    budgets = [Budget(name="a", amount="1", tags=tags) for tags in ({"user": "x"}, {"user": "*"}, {})]
    for budget in budgets:
        held = reservation(
            claims_on([budget], "mini", {"user": "x"}, NOW), Decimal("0.25"), "USD", "mini", 60
        )
        assert await ledger.run(reserve(held)) is None
    assert [each.reserved for each in await states(ledger, *budgets)] == ["0.25"] * 3
