"""How much of each budget is spent and reserved, read without changing anything."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from lmclient.core.money import EXACT
from lmclient.spend.budgets import ANY, Claim, claims_on, open_tags
from lmclient.spend.database import Database
from lmclient.spend.reports import report

if TYPE_CHECKING:
    from lmclient.settings import Budget


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """One budget in its running period; amounts are decimal numbers as text.

    `tags` hold the values that count together: a budget with the tag value `"*"` has a state for each
    value that has spent anything. `state` is "ok", "warning" (from `warn_at` on) or "spent".
    """

    name: str
    period: str
    period_name: str
    profile: str | None
    tags: dict[str, str]
    currency: str
    amount: str
    spent: str
    reserved: str
    warn_at: float
    state: str


def budget_states(
    budgets: Sequence[Budget], now: datetime.datetime
) -> Callable[[Database], list[BudgetState]]:
    """A query for the states of the budgets in their periods at `now`, in their order."""
    claims = [
        claim for budget in budgets for claim in claims_on([budget], budget.profile or "", budget.tags, now)
    ]

    def query(database: Database) -> list[BudgetState]:
        return [state for claim in claims for state in _states(database, claim)]

    return query


def _states(database: Database, claim: Claim) -> list[BudgetState]:
    spent = _counted(database, claim)
    if spent is None:
        spent = _booked(database, claim)
    reserved = _reserved(database, claim)
    keys = sorted(spent.keys() | reserved.keys()) if open_tags(claim.budget) else [()]
    return [
        _state(claim, values, spent.get(values, Decimal(0)), reserved.get(values, Decimal(0)))
        for values in keys
    ]


def _state(claim: Claim, values: tuple[str, ...], spent: Decimal, reserved: Decimal) -> BudgetState:
    budget = claim.budget
    warning = EXACT.multiply(budget.amount, Decimal(str(budget.warn_at)))
    return BudgetState(
        name=budget.name,
        period=claim.period,
        period_name=budget.period,
        profile=budget.profile,
        tags={**budget.tags, **dict(zip(open_tags(budget), values, strict=True))},
        currency=budget.currency,
        amount=f"{budget.amount:f}",
        spent=f"{spent:f}",
        reserved=f"{reserved:f}",
        warn_at=budget.warn_at,
        state="spent" if spent >= budget.amount else "warning" if spent >= warning else "ok",
    )


def _counted(database: Database, claim: Claim) -> dict[tuple[str, ...], Decimal] | None:
    """What the budget itself has counted by values, None if nothing fell under it in this period."""
    rows = _rows_of(database, "SELECT budget, spent FROM lmclient_budget WHERE", claim)
    if not any(key == f"{claim.definition} began" for key, _ in rows):
        return None
    return {values: Decimal(amount) for key, amount in rows if (values := _values(claim, key)) is not None}


def _booked(database: Database, claim: Claim) -> dict[tuple[str, ...], Decimal]:
    """What the budget will begin with: the costs in the ledger."""
    budget, names = claim.budget, open_tags(claim.budget)
    where: dict[str, str | None] = {
        f"tag:{name}": value for name, value in budget.tags.items() if value != ANY
    }
    where["currency"] = budget.currency
    if budget.profile is not None:
        where["profile"] = budget.profile
    rows = report([f"tag:{name}" for name in names], claim.since, None, where)(database)
    found: dict[tuple[str, ...], Decimal] = {}
    for row in rows:
        values = tuple(value for name in names if (value := row.tags[name]) is not None)
        if row.cost and len(values) == len(names):
            found[values] = row.cost
    return found


def _reserved(database: Database, claim: Claim) -> dict[tuple[str, ...], Decimal]:
    """What running calls have reserved, by values."""
    statement = "SELECT budget, amount FROM lmclient_reservation WHERE expires > ? AND"
    found: dict[tuple[str, ...], Decimal] = {}
    for key, amount in _rows_of(database, statement, claim, round(time.time() * 1e6)):
        values = _values(claim, key)
        if values is not None:
            found[values] = EXACT.add(found.get(values, Decimal(0)), Decimal(amount))
    return found


def _rows_of(database: Database, statement: str, claim: Claim, *parameters: object) -> list[tuple[str, str]]:
    """The rows whose key begins with the definition of the budget, as key and amount."""
    definition = claim.definition
    condition = f"{statement} substr(budget, 1, {len(definition)}) = ?"
    return [(row[0], row[1]) for row in database.execute(condition, [*parameters, definition])]


def _values(claim: Claim, key: str) -> tuple[str, ...] | None:
    """The values in a key of the budget; None if it is no value's, such as the mark that the budget began."""
    names, rest = open_tags(claim.budget), key.removeprefix(claim.definition)
    if not names:
        return () if not rest else None
    if not rest.startswith("["):
        return None
    values = tuple(json.loads(rest))
    # Costs of calls that lack one of the tags are kept under null, and are nobody's budget.
    return values if len(values) == len(names) and None not in values else None
