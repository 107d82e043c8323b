"""What the ledger tells: sums by day, category, tag and so on, and single records."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from lmclient.core.money import EXACT
from lmclient.errors import LMClientError
from lmclient.spend.database import Database, Row
from lmclient.spend.ledger import COLUMNS, EPOCH, storable
from lmclient.spend.records import SpendRecord

When = datetime.datetime | datetime.date
GROUPS = ("day", "category", "profile", "provider", "model", "currency")
"""What a report can be grouped by, beside `tag:NAME`."""
_COUNTS = ("attempts", "calls", "requests", "input_tokens", "cached_input_tokens", "output_tokens",
           "reasoning_tokens", "estimated", "unpriced")  # fmt: skip
_SUMS = """COUNT(*), SUM(final), SUM(requests), SUM(input_tokens), SUM(cached_input_tokens),
    SUM(output_tokens), SUM(reasoning_tokens), SUM(estimated),
    SUM(CASE WHEN cost IS NULL AND input_tokens + output_tokens > 0 THEN 1 ELSE 0 END),
    COUNT(cost), SUM(cost_pico / 1000000), SUM(cost_pico % 1000000),
    SUM(saved_pico / 1000000), SUM(saved_pico % 1000000)"""
# Two halves each, since a database's sum of 64-bit integers could overflow.
_ODD = "(cost_pico IS NULL AND cost IS NOT NULL OR saved_pico IS NULL AND saved_cost IS NOT NULL)"

_FIRST = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_LAST = datetime.datetime.max.replace(tzinfo=datetime.UTC)
_MOST_ROWS = 2**63 - 1
"""The highest limit that both databases take."""


class SpendRow(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of the attempts that are alike in what the report is grouped by, and in currency.

    Only the fields that the report is grouped by are set; `day` is a day in UTC, `tags` has the tags
    of `tag:NAME`. `calls` counts calls by their last attempt, `requests` HTTP requests. `cost` is
    None where no attempt has a known price; `unpriced` counts the attempts that used tokens at an
    unknown price, `estimated` those whose tokens were estimated. Answers of the cache count as calls and
    attempts with the tokens that they once took, but make no requests and cost nothing; `saved_cost` is
    what they would have cost.
    """

    day: datetime.date | None = None
    category: str | None = None
    profile: str | None = None
    provider: str | None = None
    model: str | None = None
    tags: dict[str, str | None] = {}
    currency: str
    calls: int
    attempts: int
    requests: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    estimated: int
    unpriced: int
    cost: Decimal | None
    saved_cost: Decimal

    def value(self, group: str) -> str | None:
        """What the row has for one of the names that the report is grouped by, as text."""
        value = self.tags.get(group[4:]) if group.startswith("tag:") else getattr(self, group)
        return None if value is None else str(value)


class Filter(NamedTuple):
    """The rows of a report as an SQL condition and its parameters."""

    condition: str
    parameters: list[object]


def report(
    by: Sequence[str], since: When | None, until: When | None, where: Mapping[str, str | None]
) -> Callable[[Database], list[SpendRow]]:
    """A query for the rows of a report.

    Raises `LMClientError` for a group that does not exist, and for what is no moment.
    """
    for name in (*by, *where):
        if name not in GROUPS and not (isinstance(name, str) and name.startswith("tag:") and len(name) > 4):
            raise LMClientError(
                f"A report has no {name!r}; there are {', '.join(GROUPS)} and tag:NAME (such as tag:user)."
            )
    groups = list(dict.fromkeys(name for name in by if name != "currency"))
    start, end = _start(since, "since"), _end(until)

    def query(database: Database) -> list[SpendRow]:
        keys = [_column(database, name) for name in (*groups, "currency")]
        columns = ", ".join(key for key, _ in keys)
        names = [name for _, parameters in keys for name in parameters]
        filter = _filter(database, start, end, where)
        ordinals = ", ".join(str(number + 1) for number in range(len(keys)))
        rows = database.execute(
            f"SELECT {columns}, {_SUMS} FROM lmclient_spend WHERE {filter.condition} GROUP BY {ordinals}",
            [*names, *filter.parameters],
        )
        odd = database.execute(
            f"SELECT {columns}, CASE WHEN cost_pico IS NULL THEN cost END, "
            f"CASE WHEN saved_pico IS NULL THEN saved_cost END FROM lmclient_spend "
            f"WHERE {_ODD} AND {filter.condition}",
            [*names, *filter.parameters],
        )
        return _rows(groups, rows, odd)

    return query


def total(rows: Iterable[SpendRow]) -> dict[str, Decimal]:
    """The cost in each currency."""
    return {row.currency: row.cost for row in rows if row.cost is not None}


def records(limit: int) -> Callable[[Database], list[SpendRecord]]:
    """A query for the newest records, the newest first. Raises `LMClientError` for a wrong limit."""
    if not isinstance(limit, int) or limit < 0:
        raise LMClientError(f"limit is {limit!r}; expected a number of records, 0 or more.")

    def query(database: Database) -> list[SpendRecord]:
        rows = database.execute(
            f"SELECT {', '.join(COLUMNS)} FROM lmclient_spend "
            "ORDER BY day DESC, time DESC, attempt DESC LIMIT ?",
            (min(limit, _MOST_ROWS),),
        )
        return [_record(row) for row in rows]

    return query


def _column(database: Database, name: str) -> tuple[str, list[object]]:
    """The SQL expression of a group, and its parameters."""
    if not name.startswith("tag:"):
        return name, []
    expression, parameter = database.tag(storable(name[4:]))
    return expression, [parameter]


def _filter(
    database: Database,
    start: datetime.datetime | None,
    end: datetime.datetime | None,
    where: Mapping[str, str | None],
) -> Filter:
    conditions, parameters = ["1 = 1"], list[object]()
    for moment, sign in ((start, ">="), (end, "<")):
        if moment is not None:
            # The rows are found by their day; the time makes it exact.
            conditions += [f"day {sign.rstrip('=')}= ?", f"time {sign} ?"]
            parameters += [moment.date().isoformat(), _microseconds(moment)]
    for name, value in where.items():
        expression, names = _column(database, name)
        parameters += names
        conditions.append(f"{expression} IS NULL" if value is None else f"{expression} = ?")
        if value is not None:
            parameters.append(storable(str(value)))
    return Filter(" AND ".join(conditions), parameters)


def _start(moment: When | None, name: str) -> datetime.datetime | None:
    if moment is None:
        return None
    if isinstance(moment, datetime.datetime):
        try:
            return moment.astimezone(datetime.UTC)
        except (OverflowError, ValueError):  # in UTC it would be before the year 1, or after 9999
            return _FIRST if moment.year == 1 else _LAST
    if isinstance(moment, datetime.date):
        return datetime.datetime.combine(moment, datetime.time(), datetime.UTC)
    raise LMClientError(f"{name} is {moment!r}; expected a date or a datetime.")


def _end(moment: When | None) -> datetime.datetime | None:
    """The moment before which rows count: after the whole day if it is a date."""
    start = _start(moment, "until")
    if start is None or isinstance(moment, datetime.datetime):
        return start
    return _LAST if moment == datetime.date.max else start + datetime.timedelta(days=1)


def _microseconds(moment: datetime.datetime) -> int:
    return (moment - EPOCH) // datetime.timedelta(microseconds=1)


def _rows(groups: Sequence[str], rows: list[Row], odd: list[Row]) -> list[SpendRow]:
    width = len(groups) + 1
    costs: dict[Row, list[Decimal]] = {}
    for row in odd:
        sums = costs.setdefault(row[:width], [Decimal(0), Decimal(0)])
        for index, amount in enumerate(row[width:]):
            if amount is not None:
                sums[index] = EXACT.add(sums[index], Decimal(amount))
    rows.sort(key=lambda row: [(value is None, value or "") for value in row[:width]])
    none = (Decimal(0), Decimal(0))
    return [_row(groups, row[:width], row[width:], *costs.get(row[:width], none)) for row in rows]


def _row(groups: Sequence[str], key: Row, sums: Row, cost: Decimal, saved: Decimal) -> SpendRow:
    fields: dict[str, Any] = dict(zip(groups, key, strict=False))
    tags = {name[4:]: fields.pop(name) for name in groups if name.startswith("tag:")}
    if "day" in fields:
        fields["day"] = datetime.date.fromisoformat(fields["day"])
    fields.update((name, int(count or 0)) for name, count in zip(_COUNTS, sums, strict=False))
    priced, *halves = sums[len(_COUNTS) :]
    return SpendRow(
        **fields,
        tags=tags,
        currency=key[-1],
        cost=_amount(cost, *halves[:2]) if priced else None,
        saved_cost=_amount(saved, *halves[2:]),
    )


def _amount(odd: Decimal, micro: Any, rest: Any) -> Decimal:
    """The sum of the odd costs and of the halves of the others, without zeros at its end."""
    pico = Decimal(int(micro or 0) * 10**6 + int(rest or 0))
    whole = EXACT.add(odd, EXACT.scaleb(pico, Decimal(-12))).normalize(EXACT)
    return Decimal(format(whole, "f"))


def _record(row: Row) -> SpendRecord:
    values = dict(zip(COLUMNS, row, strict=True))
    for name in ("day", "cost_pico", "saved_pico"):
        del values[name]
    for name in ("final", "estimated", "inconsistent"):
        values[name] = bool(values[name])
    for name in ("cost", "saved_cost"):
        values[name] = None if values[name] is None else Decimal(values[name])
    values["time"] = EPOCH + datetime.timedelta(microseconds=values["time"])
    values["tags"] = msgspec.json.decode(values["tags"])
    return SpendRecord(**values)
