"""Budgets: what they have spent and what running calls may still spend, in the ledger's database.

A budget counts the calls that pass it. When its period begins, or the budget itself is new, it starts
with what the ledger already holds for that period. Amounts are exact decimals.
"""

from __future__ import annotations

import datetime
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from lmclient.spend.database import Database
from lmclient.spend.ledger import EXACT
from lmclient.spend.reports import report

if TYPE_CHECKING:
    from lmclient.settings import Budget

GRACE = 60.0
"""Seconds by which a reservation outlives its call's deadline; then its process must be dead."""
ANY = "*"
"""The value of a tag in a budget that each value has for itself."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One budget that a call falls under, in one period; `values` are the call's for tags of `"*"`."""

    budget: Budget
    period: str
    since: datetime.date | None
    values: tuple[str, ...]

    @property
    def definition(self) -> str:
        """The budget and its period as a key; a budget that counts other calls is another one."""
        budget = self.budget
        return json.dumps(
            [budget.name, self.period, budget.currency, budget.profile, sorted(budget.tags.items())]
        )

    @property
    def key(self) -> str:
        """The same with the values: what is counted together."""
        return key_of(self.definition, self.values)

    @property
    def resolved(self) -> Budget:
        """The budget with the values in place of `"*"`."""
        tags = {**self.budget.tags, **dict(zip(open_tags(self.budget), self.values, strict=True))}
        return self.budget.model_copy(update={"tags": tags})


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """What a running call holds of its budgets: `amount` of each, None if its price is unknown.

    All of them are in `currency`.
    """

    id: str
    claims: Sequence[Claim]
    amount: Decimal | None
    currency: str
    expires: int


def claims_on(
    budgets: Sequence[Budget], profile: str, tags: Mapping[str, str], now: datetime.datetime
) -> list[Claim]:
    """The budgets of all currencies that a call falls under, in their periods at `now` (days in UTC)."""
    day = now.astimezone(datetime.UTC).date()
    periods = {
        "day": (day.isoformat(), day),
        "month": (f"{day:%Y-%m}", day.replace(day=1)),
        "total": ("total", None),
    }
    claims = []
    for budget in budgets:
        if budget.profile in (None, profile) and _match(budget, tags):
            period, since = periods[budget.period]
            values = tuple(tags[name] for name in open_tags(budget))
            claims.append(Claim(budget=budget, period=period, since=since, values=values))
    return claims


def reservation(
    claims: Sequence[Claim], amount: Decimal | None, currency: str, seconds: float
) -> Reservation:
    """A reservation that is to be made; it lapses some time after `seconds` from now."""
    return Reservation(
        id=secrets.token_hex(12),
        claims=[claim for claim in claims if claim.budget.currency == currency],
        amount=amount,
        currency=currency,
        expires=round((time.time() + seconds + GRACE) * 1e6),
    )


def reserve(reservation: Reservation) -> Callable[[Database], str | None]:
    """Work for the ledger that makes the reservation in all of its budgets, or in none.

    It returns what stands against it if a budget has not so much left. A call whose price is unknown
    reserves nothing, but a budget that is used up refuses it as well.
    """

    def work(database: Database) -> str | None:
        database.lock()
        now = round(time.time() * 1e6)
        database.execute("DELETE FROM lmclient_reservation WHERE expires <= ?", (now,))
        for claim in reservation.claims:
            spent, reserved = _spent(database, claim), _reserved(database, claim)
            held = EXACT.add(spent, reserved)
            amount = claim.budget.amount
            if reservation.amount is None:
                refused = held >= amount
            else:
                refused = EXACT.add(held, reservation.amount) > amount
            if refused:
                return _refusal(claim, spent, reserved, reservation.amount)
        for claim in reservation.claims:
            row = (reservation.id, claim.key, _text(reservation.amount or Decimal(0)), reservation.expires)
            database.execute(
                "INSERT INTO lmclient_reservation (call_id, budget, amount, expires) VALUES (?, ?, ?, ?)", row
            )
        return None

    return work


def settle(reservation: Reservation, cost: Decimal) -> Callable[[Database], list[tuple[Budget, Decimal]]]:
    """Work for the ledger that counts what a call really cost in place of what it reserved.

    It returns the budgets that have now reached their `warn_at`, and what they have spent.
    """

    def work(database: Database) -> list[tuple[Budget, Decimal]]:
        database.lock()
        database.execute("DELETE FROM lmclient_reservation WHERE call_id = ?", (reservation.id,))
        due = []
        for claim in reservation.claims:
            rows = database.execute(
                "SELECT spent, warned FROM lmclient_budget WHERE budget = ?", (claim.key,)
            )
            spent = EXACT.add(Decimal(rows[0][0]), cost)
            warn = not rows[0][1] and spent >= EXACT.multiply(
                claim.budget.amount, Decimal(str(claim.budget.warn_at))
            )
            if warn:
                due.append((claim.resolved, spent))
            database.execute(
                "UPDATE lmclient_budget SET spent = ?, warned = ? WHERE budget = ?",
                (_text(spent), int(warn or rows[0][1]), claim.key),
            )
        return due

    return work


def open_tags(budget: Budget) -> list[str]:
    """The tags of which each value has the budget for itself, sorted."""
    return sorted(name for name, value in budget.tags.items() if value == ANY)


def key_of(definition: str, values: Sequence[str | None]) -> str:
    """The key of what is counted together."""
    return f"{definition}{json.dumps(list(values))}" if values else definition


def _match(budget: Budget, tags: Mapping[str, str]) -> bool:
    return all(
        name in tags if value == ANY else tags.get(name) == value for name, value in budget.tags.items()
    )


def _spent(database: Database, claim: Claim) -> Decimal:
    query = "SELECT spent FROM lmclient_budget WHERE budget = ?"
    rows = database.execute(query, (claim.key,))
    if not rows:
        _begin(database, claim)
        rows = database.execute(query, (claim.key,))
    return Decimal(rows[0][0])


def _begin(database: Database, claim: Claim) -> None:
    """Begins a budget's period with what the ledger holds of it, for all values of its tags at once."""
    insert = "INSERT INTO lmclient_budget (budget, spent, warned) VALUES (?, ?, 0) ON CONFLICT DO NOTHING"
    budget, definition = claim.budget, claim.definition
    marker = (f"{definition} began",)
    if not database.execute("SELECT 1 FROM lmclient_budget WHERE budget = ?", marker):
        names = open_tags(budget)
        where: dict[str, str | None] = {
            f"tag:{name}": value for name, value in budget.tags.items() if value != ANY
        }
        where["currency"] = budget.currency
        if budget.profile is not None:
            where["profile"] = budget.profile
        query = report([f"tag:{name}" for name in names], claim.since, None, where)
        for row in query(database):
            if row.cost:
                values = [row.tags[name] for name in names]
                database.execute(insert, (key_of(definition, values), _text(row.cost)))
        database.execute(insert, (*marker, "0"))
    database.execute(insert, (claim.key, "0"))


def _reserved(database: Database, claim: Claim) -> Decimal:
    rows = database.execute("SELECT amount FROM lmclient_reservation WHERE budget = ?", (claim.key,))
    total = Decimal(0)
    for row in rows:
        total = EXACT.add(total, Decimal(row[0]))
    return total


def _text(amount: Decimal) -> str:
    return format(amount, "f")


def _refusal(claim: Claim, spent: Decimal, reserved: Decimal, amount: Decimal | None) -> str:
    budget = claim.resolved
    of = "".join(f", {name} {value!r}" for name, value in sorted(budget.tags.items()))
    may_cost = "an amount that is not known" if amount is None else f"up to {amount.normalize():f}"
    return (
        f"The budget {budget.name!r} ({claim.period}{of}) of {budget.amount:f} {budget.currency} does not "
        f"allow the call, which may cost {may_cost}: {spent.normalize():f} are spent and "
        f"{reserved.normalize():f} reserved by running calls."
    )
