"""Reports: grouped, filtered, by period, and never adding up two currencies."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from lmclient import Ledger, LMClientError
from lmclient.spend.client import AsyncSpend

from .making import NOON, record

DAY = datetime.timedelta(days=1)


async def book(ledger: Ledger, *costs: str, **values: object) -> None:
    await ledger.book([record(cost=Decimal(cost), **values) for cost in costs])


async def test_rows_are_grouped_and_sorted(ledger: Ledger, spend: AsyncSpend) -> None:
    await book(ledger, "1", "2", category="m", tags={"user": "b"})
    await book(ledger, "4", category="m", tags={"user": "a"})
    await book(ledger, "8", category="m", tags={"user": "a"}, time=NOON - DAY)
    await book(ledger, "16", category=None)
    rows = await spend.report(["day", "category", "tag:user"])
    assert [(row.day, row.category, row.tags["user"], row.cost) for row in rows] == [
        (datetime.date(2026, 3, 13), "m", "a", 8),
        (datetime.date(2026, 3, 14), "m", "a", 4),
        (datetime.date(2026, 3, 14), "m", "b", 3),
        (datetime.date(2026, 3, 14), None, None, 16),
    ]


async def test_currencies_are_never_added_up(ledger: Ledger, spend: AsyncSpend) -> None:
    await book(ledger, "1", "2")
    await book(ledger, "5", currency="EUR")
    rows = await spend.report(["profile"])
    assert [(row.profile, row.currency, row.cost) for row in rows] == [("mini", "EUR", 5), ("mini", "USD", 3)]
    assert await spend.total() == {"EUR": 5, "USD": 3}


async def test_sums_count_calls_by_their_last_attempt(ledger: Ledger, spend: AsyncSpend) -> None:
    await ledger.book(
        [
            record(call_id="a", attempt=1, final=False, status="failed", requests=1),
            record(
                call_id="a", attempt=2, input_tokens=10, output_tokens=5, reasoning_tokens=2, cost=Decimal(1)
            ),
            record(call_id="b", requests=0, cost=Decimal(0), cost_source="cache", saved_cost=Decimal(1)),
        ]
    )
    (row,) = await spend.report([])
    counted = (
        row.calls,
        row.attempts,
        row.requests,
        row.input_tokens,
        row.output_tokens,
        row.reasoning_tokens,
    )
    assert counted == (2, 3, 2, 10, 5, 2)
    assert (row.cost, row.saved_cost, row.unpriced) == (1, 1, 0)


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (NOON, None, 6),
        (None, NOON, 1),
        (NOON.date(), NOON.date(), 2),
        (None, NOON.date(), 3),
        (NOON + datetime.timedelta(microseconds=1), None, 4),
        (NOON.astimezone(datetime.timezone(datetime.timedelta(hours=5))), None, 6),
        (NOON.astimezone().replace(tzinfo=None), None, 6),
    ],
)
async def test_period_is_kept_to_the_microsecond(
    ledger: Ledger,
    spend: AsyncSpend,
    since: datetime.date | None,
    until: datetime.date | None,
    expected: int,
) -> None:
    for cost, time in (("1", NOON - DAY), ("2", NOON), ("4", NOON + DAY)):
        await book(ledger, cost, time=time)
    assert await spend.total(since, until) == {"USD": expected}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"profile": "mini"}, 3),
        ({"category": "m"}, 1),
        ({"category": None}, 6),
        ({"tag:user": "42"}, 2),
        ({"tag:user": None}, 5),
        ({'tag:the "user\'s" $': "x"}, 4),
        ({"profile": "mini", "tag:user": "42"}, 2),
        ({"profile": "'; DROP TABLE lmclient_spend; --"}, None),
    ],
)
async def test_filters(
    ledger: Ledger, spend: AsyncSpend, where: dict[str, str | None], expected: int | None
) -> None:
    await book(ledger, "1", category="m")
    await book(ledger, "2", tags={"user": "42"})
    await book(ledger, "4", profile="other", tags={'the "user\'s" $': "x"})
    assert await spend.total(where=where) == ({} if expected is None else {"USD": expected})


@pytest.mark.parametrize("name", ["nonsense", "tag:", "time"])
async def test_unknown_group_is_named(spend: AsyncSpend, name: str) -> None:
    with pytest.raises(LMClientError, match=f"no '{name}'"):
        await spend.report([name])


async def test_group_that_is_named_twice_counts_once(ledger: Ledger, spend: AsyncSpend) -> None:
    await book(ledger, "1", "2")
    (row,) = await spend.report(["currency", "day", "day"])
    assert (row.day, row.currency, row.cost) == (NOON.date(), "USD", 3)


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (datetime.datetime.min, datetime.date.max, True),
        (datetime.date.min, datetime.datetime.max, True),
        (datetime.datetime.max.replace(tzinfo=datetime.UTC), None, False),
        (datetime.datetime.max.replace(tzinfo=datetime.timezone(-DAY / 2)), None, False),
        (None, datetime.datetime.min.replace(tzinfo=datetime.timezone(DAY / 2)), False),
        (datetime.datetime.min.replace(tzinfo=datetime.timezone(DAY / 2)), None, True),
    ],
)
async def test_period_may_reach_to_the_ends_of_time(
    ledger: Ledger, spend: AsyncSpend, since: datetime.date, until: datetime.date, found: bool
) -> None:
    await book(ledger, "1")
    assert bool(await spend.total(since, until)) is found


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("moment", ["2026-01-01", 5])
async def test_period_that_is_no_moment_is_refused(spend: AsyncSpend, name: str, moment: Any) -> None:
    with pytest.raises(LMClientError, match=f"{name} is {moment!r}; expected a date or a datetime"):
        await spend.report(**{name: moment})


@pytest.mark.parametrize("limit", ["x", 1.5, None, -1])
async def test_limit_that_is_no_number_of_records_is_refused(spend: AsyncSpend, limit: Any) -> None:
    with pytest.raises(LMClientError, match="expected a number of records"):
        await spend.records(limit)


@pytest.mark.parametrize(("limit", "found"), [(0, 0), (10**30, 1)])
async def test_limit_may_be_nothing_or_more_than_there_is(
    ledger: Ledger, spend: AsyncSpend, limit: int, found: int
) -> None:
    await book(ledger, "1")
    assert len(await spend.records(limit)) == found


async def test_answers_of_the_cache_count_with_the_tokens_that_they_once_took(
    ledger: Ledger, spend: AsyncSpend
) -> None:
    await ledger.book([record(input_tokens=1000, cost=Decimal(1))])
    hits = {"requests": 0, "cost": Decimal(0), "cost_source": "cache", "saved_cost": Decimal(1)}
    await ledger.book([record(input_tokens=1000, **hits) for _ in range(4)])
    (row,) = await spend.report([])
    assert (row.calls, row.requests, row.input_tokens, row.cost, row.saved_cost) == (5, 1, 5000, 1, 4)


async def test_empty_ledger_has_no_rows(spend: AsyncSpend) -> None:
    assert (await spend.report(["day"]), await spend.total(), await spend.records()) == ([], {}, [])
