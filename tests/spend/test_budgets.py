"""Reservations of budgets, on each kind of database."""

from __future__ import annotations

import asyncio
import datetime
from decimal import Decimal
from typing import Any

import pytest

from lmclient import Ledger, SpendRecord
from lmclient.settings import Budget
from lmclient.spend.budgets import Reservation, claims_on, reservation, reserve, settle

NOW = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
TENTH = Decimal("0.1")


def held(
    budget: Budget, amount: Decimal | None = TENTH, now: datetime.datetime = NOW, **tags: str
) -> Reservation:
    return reservation(claims_on([budget], "p", tags, now), amount, "USD", "p", 60)


def budget(**values: Any) -> Budget:
    return Budget(**{"name": "b", "amount": "1", **values})


def row(cost: str, day: int = 30, month: int = 11, **values: Any) -> SpendRecord:
    time = datetime.datetime(2026, month, day, 12, tzinfo=datetime.UTC)
    record = {
        "call_id": f"{cost}{day}{month}{values}",
        "attempt": 1,
        "profile": "p",
        "provider": "x",
        "model": "m",
    }
    return SpendRecord(**{**record, "time": time, "cost": Decimal(cost), **values})  # type: ignore[arg-type]  # mixed


async def spent(ledger: Ledger, asked: Reservation) -> Decimal | None:
    """What the first budget of a reservation says it has spent."""

    def work(database: Any) -> Any:
        return database.execute("SELECT spent FROM lmclient_budget WHERE budget = ?", (asked.claims[0].key,))

    await ledger.run(reserve(asked))
    rows = await ledger.run(work)
    return Decimal(rows[0][0]) if rows else None


async def test_at_once_no_more_is_reserved_than_there_is(ledger: Ledger) -> None:
    asked = [held(budget(amount="0.35")) for _ in range(12)]
    outcomes = await asyncio.gather(*(ledger.run(reserve(one)) for one in asked))
    assert outcomes.count(None) == 3


async def test_all_budgets_are_reserved_or_none(ledger: Ledger) -> None:
    both = [budget(name="large"), budget(name="small", amount="0.05")]
    asked = reservation(claims_on(both, "p", {}, NOW), TENTH, "USD", "p", 60)
    assert "'small'" in (await ledger.run(reserve(asked)) or "")
    assert await ledger.run(reserve(held(both[0], Decimal(1)))) is None


async def test_settling_counts_the_cost_exactly(ledger: Ledger) -> None:
    for _ in range(3):
        asked = held(budget())
        assert await ledger.run(reserve(asked)) is None
        await ledger.run(settle(asked, {"USD": Decimal("0.000000000000000001")}))
    assert await spent(ledger, held(budget())) == Decimal("0.000000000000000003")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"period": "day"}, "0.3"),
        ({"period": "month"}, "0.7"),
        ({"period": "total"}, "1.5"),
        ({"period": "total", "profile": "p"}, "1.5"),
        ({"period": "total", "profile": "p", "tags": {"user": "1"}}, "0.3"),
        ({"period": "total", "tags": {"user": "*"}}, "0.3"),
    ],
)
async def test_a_period_begins_with_what_the_ledger_holds_of_it(
    ledger: Ledger, values: dict[str, Any], expected: str
) -> None:
    await ledger.book(
        [
            row("0.1"),
            row("0.2", tags={"user": "1"}),
            row("0.4", day=1),
            row("0.7", month=10),
            row("0.1", month=9, tags={"user": "1"}),
            row("5", currency="EUR"),
        ]
    )
    asked = held(budget(amount="9", **values), user="1")
    assert await spent(ledger, asked) == Decimal(expected)


async def test_a_new_period_begins_anew(ledger: Ledger) -> None:
    asked = held(budget(period="day", amount="0.1"))
    assert await ledger.run(reserve(asked)) is None
    await ledger.run(settle(asked, {"USD": TENTH}))
    tomorrow = NOW + datetime.timedelta(days=1)
    assert await ledger.run(reserve(held(budget(period="day", amount="0.1")))) is not None
    assert await ledger.run(reserve(held(budget(period="day", amount="0.1"), now=tomorrow))) is None


@pytest.mark.parametrize(
    ("now", "day"),
    [("2026-12-01T00:30:00+02:00", "2026-11-30"), ("2026-11-30T23:30:00-02:00", "2026-12-01")],
)
def test_days_and_months_are_those_of_utc(now: str, day: str) -> None:
    budgets = [budget(period="day"), budget(period="month")]
    claims = claims_on(budgets, "p", {}, datetime.datetime.fromisoformat(now))
    assert [claim.period for claim in claims] == [day, day[:7]]


async def test_what_a_call_held_at_midnight_counts_for_the_day_it_began(ledger: Ledger) -> None:
    daily, tomorrow = budget(period="day", amount="0.1"), NOW + datetime.timedelta(days=1)
    asked = held(daily)
    assert await ledger.run(reserve(asked)) is None
    assert await ledger.run(reserve(held(daily, now=tomorrow))) is None
    await ledger.run(settle(asked, {"USD": TENTH}))
    assert await spent(ledger, held(daily)) == TENTH
    assert await spent(ledger, held(daily, now=tomorrow)) == 0


@pytest.mark.parametrize("amount", ["0.3", 0.3, Decimal("0.30")])
async def test_an_amount_is_exact_however_it_is_given(ledger: Ledger, amount: object) -> None:
    asked = [held(budget(amount=amount)) for _ in range(4)]
    assert [await ledger.run(reserve(one)) is None for one in asked] == [True, True, True, False]


async def test_a_budget_of_nothing_allows_only_what_costs_nothing(ledger: Ledger) -> None:
    nothing = budget(amount=0)
    assert await ledger.run(reserve(held(nothing, Decimal(0)))) is None
    assert "not known" in (await ledger.run(reserve(held(nothing, None))) or "")
    assert "up to 0.1" in (await ledger.run(reserve(held(nothing))) or "")


async def test_a_cost_in_another_currency_counts_in_its_budgets(ledger: Ledger) -> None:
    euros = held(budget(currency="EUR"))
    assert await ledger.run(reserve(euros)) is None
    await ledger.run(settle(euros, {"EUR": TENTH, "USD": Decimal(5)}))
    assert await spent(ledger, held(budget(currency="EUR"))) == TENTH


async def test_the_most_that_a_call_has_cost_more_is_reserved_beside_others(ledger: Ledger) -> None:
    for cost in ("0.2", "0.4", "0.3"):
        asked = held(budget(amount="1.5"))
        assert await ledger.run(reserve(asked)) is None
        await ledger.run(settle(asked, {"USD": Decimal(cost)}))
    outcomes = [await ledger.run(reserve(held(budget(amount="1.5")))) for _ in range(2)]
    assert outcomes[0] is None
    assert "up to 0.4: 0.9 are spent and 0.4 reserved" in (outcomes[1] or "")


async def test_calls_that_run_already_hold_what_another_one_has_cost_more(ledger: Ledger) -> None:
    asked = [held(budget()) for _ in range(3)]
    for one in asked:
        assert await ledger.run(reserve(one)) is None
    await ledger.run(settle(asked[0], {"USD": Decimal("0.3")}))
    assert "0.3 are spent and 0.6 reserved" in (await ledger.run(reserve(held(budget()))) or "")


async def test_tags_of_any_text_are_kept_apart(ledger: Ledger) -> None:
    one = budget(amount="0.1", tags={"user": "*"})
    for user in ("a", 'a"]', "ü\u2028", "\ud800", ""):
        assert await ledger.run(reserve(held(one, user=user))) is None
        assert await ledger.run(reserve(held(one, user=user))) is not None


async def test_what_is_settled_again_since_that_was_in_doubt_is_counted_once(ledger: Ledger) -> None:
    """A connection that breaks at the commit leaves open whether it was done."""
    asked = held(budget())
    await ledger.run(reserve(asked))
    for _ in range(2):
        await ledger.run(settle(asked, {"USD": TENTH}))
    assert await spent(ledger, held(budget())) == TENTH


async def test_what_is_settled_after_its_reservation_has_lapsed_is_counted(ledger: Ledger) -> None:
    late = reservation(claims_on([budget()], "p", {}, NOW), TENTH, "USD", "p", -3600)
    await ledger.run(reserve(late))
    await ledger.run(reserve(held(budget())))  # which sweeps out the other
    await ledger.run(settle(late, {"USD": TENTH}))
    assert await spent(ledger, held(budget())) == TENTH


@pytest.mark.parametrize("value", ["".join(map(chr, range(40, 20_000))), "a\0b", "half \ud800"])
async def test_every_value_of_a_tag_can_have_a_budget(ledger: Ledger, value: str) -> None:
    await ledger.book([row("0.1", call_id="1", tags={"user": value})])
    asked = held(budget(tags={"user": "*"}), user=value)
    assert await spent(ledger, asked) == TENTH
    await ledger.run(settle(asked, {"USD": TENTH}))
    assert await spent(ledger, held(budget(tags={"user": "*"}), user=value)) == 2 * TENTH
    assert await spent(ledger, held(budget(tags={"user": "*"}), user=f"{value}.")) == 0
