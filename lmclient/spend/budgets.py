"""Budgets: what they have spent and what running calls may still spend, in the ledger's database.

A budget counts the calls that pass it. When its period begins, or the budget itself is new, it starts
with what the ledger already holds for that period. Amounts are exact decimals.

What a call has cost beyond its worst case is kept for its profile: from then on as much more is held for
its calls, in all processes, also for those that are running already.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from lmclient.core.money import EXACT
from lmclient.spend.database import Database
from lmclient.spend.ledger import storable
from lmclient.spend.reports import report

if TYPE_CHECKING:
    from lmclient.settings import Budget

GRACE = 60.0
"""Seconds by which a reservation outlives its call's deadline; then its process must be dead."""
_SWEPT_AFTER = 3600 * 10**6
"""Microseconds after which a reservation that has lapsed is removed: clocks of other machines may differ."""
ANY = "*"
"""The value of a tag in a budget that each value has for itself."""
LONGEST_VALUE = 200
"""Characters of a tag's value up to which it stands in keys as it is: what databases index is limited."""


Due = list[tuple["Budget", Decimal]]
"""Budgets that have reached their `warn_at`, and what they have spent."""


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
    """What a running call holds of its budgets: its worst case `amount`, None if its price is unknown.

    Of budgets that are not in `currency` it holds nothing, unless such calls turned out to cost something
    there. Calls with the same `payer` are alike in that: a profile with its model and its prices.
    """

    id: str
    claims: Sequence[Claim]
    amount: Decimal | None
    currency: str
    payer: str
    expires: int

    def amount_in(self, currency: str) -> Decimal | None:
        """The worst case in a currency."""
        return self.amount if currency == self.currency else Decimal(0)


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
            values = tuple(_in_keys(tags[name]) for name in open_tags(budget))
            claims.append(Claim(budget=budget, period=period, since=since, values=values))
    return claims


def reservation(
    claims: Sequence[Claim], amount: Decimal | None, currency: str, payer: str, seconds: float
) -> Reservation:
    """A reservation that is to be made; it lapses some time after `seconds` from now."""
    return Reservation(
        id=_new_id(),
        claims=claims,
        amount=amount,
        currency=currency,
        payer=payer,
        expires=round((time.time() + seconds + GRACE) * 1e6),
    )


def reserve(reservation: Reservation) -> Callable[[Database], str | None]:
    """Work for the ledger that makes the reservation in all of its budgets, or in none.

    It returns what stands against it if a budget has not so much left.
    """

    def work(database: Database) -> str | None:
        database.lock()
        now = round(time.time() * 1e6)
        database.execute("DELETE FROM lmclient_reservation WHERE expires <= ?", (now - _SWEPT_AFTER,))
        for claim in reservation.claims:
            refusal = _refusal(database, claim, reservation)
            if refusal is not None:
                return refusal
        for claim in reservation.claims:
            amount = reservation.amount_in(claim.budget.currency) or Decimal(0)
            row = (reservation.id, claim.key, _text(amount), reservation.expires, reservation.payer)
            database.execute(
                "INSERT INTO lmclient_reservation (call_id, budget, amount, expires, payer) "
                "VALUES (?, ?, ?, ?, ?)",
                row,
            )
        return None

    return work


def settle(reservation: Reservation, costs: Mapping[str, Decimal]) -> Callable[[Database], Due]:
    """Work for the ledger that counts what a call really cost, by currency, in place of what it reserved.

    It returns the budgets that have now reached their `warn_at`, and what they have spent. Done again,
    because it was in doubt whether it had been done, it counts nothing, unless the reservation had lapsed.
    """

    def work(database: Database) -> Due:
        database.lock()
        if not _is_held(database, reservation) and time.time() * 1e6 < reservation.expires + _SWEPT_AFTER:
            return []
        database.execute("DELETE FROM lmclient_reservation WHERE call_id = ?", (reservation.id,))
        due = []
        for claim in reservation.claims:
            cost = costs.get(claim.budget.currency)
            if cost and (spent := _count(database, claim, cost)) is not None:
                due.append((claim.resolved, spent))
        for currency in {claim.budget.currency for claim in reservation.claims}:
            most = reservation.amount_in(currency) or Decimal(0)
            _learn(database, reservation, currency, EXACT.subtract(costs.get(currency, Decimal(0)), most))
        return due

    return work


def renewed(reservation: Reservation, claims: Sequence[Claim]) -> Reservation:
    """A reservation for another try of the same call, in the budgets as they are now."""
    return msgspec.structs.replace(reservation, id=_new_id(), claims=claims)


def reserve_after(
    settled: Sequence[tuple[Reservation, Mapping[str, Decimal]]], reservation: Reservation
) -> Callable[[Database], tuple[Due, str | None]]:
    """Work for the ledger that counts what calls have cost, and then makes a reservation.

    It returns what `settle` and `reserve` return; what was counted stays so where the latter refuses.
    """

    def work(database: Database) -> tuple[Due, str | None]:
        due = settle_all(settled)(database) if settled else []
        return due, reserve(reservation)(database)

    return work


def settle_all(settled: Sequence[tuple[Reservation, Mapping[str, Decimal]]]) -> Callable[[Database], Due]:
    """Work for the ledger that does the work of `settle` for several calls."""

    def work(database: Database) -> Due:
        return [due for held, costs in settled for due in settle(held, costs)(database)]

    return work


def open_tags(budget: Budget) -> list[str]:
    """The tags of which each value has the budget for itself, sorted."""
    return sorted(name for name, value in budget.tags.items() if value == ANY)


def key_of(definition: str, values: Sequence[str | None]) -> str:
    """The key of what is counted together."""
    return f"{definition}{json.dumps(list(values))}" if values else definition


def _new_id() -> str:
    return secrets.token_hex(12)


def _in_keys(value: str) -> str:
    """The value of a tag as it stands in keys."""
    value = storable(value)
    if len(value) <= LONGEST_VALUE:
        return value
    return f"{value[: LONGEST_VALUE // 2]}… {hashlib.sha256(value.encode()).hexdigest()}"


def _is_held(database: Database, reservation: Reservation) -> bool:
    query = "SELECT 1 FROM lmclient_reservation WHERE call_id = ? LIMIT 1"
    return bool(database.execute(query, (reservation.id,)))


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
                values = [None if (value := row.tags[name]) is None else _in_keys(value) for name in names]
                database.execute(insert, (key_of(definition, values), _text(row.cost)))
        database.execute(insert, (*marker, "0"))
    database.execute(insert, (claim.key, "0"))


def _reserved(database: Database, claim: Claim) -> Decimal:
    """What running calls may still cost, as far as is known by now."""
    rows = database.execute(
        "SELECT held.amount, excess.amount FROM lmclient_reservation held LEFT JOIN lmclient_excess excess "
        "ON excess.payer = held.payer AND excess.currency = ? WHERE held.budget = ? AND held.expires > ?",
        (claim.budget.currency, claim.key, round(time.time() * 1e6)),
    )
    total = Decimal(0)
    for amount, excess in rows:
        total = EXACT.add(total, EXACT.add(Decimal(amount), Decimal(excess or 0)))
    return total


def _refusal(database: Database, claim: Claim, reservation: Reservation) -> str | None:
    """What stands against a call if the budget has not so much left.

    A call that costs nothing passes always. One of which nobody can say what it will cost needs a budget
    that is not used up. Room for the excess is asked for beside other calls only: one answer beyond all
    measure must not keep a profile out of a budget that nobody else uses.
    """
    budget, spent, reserved = claim.budget, _spent(database, claim), _reserved(database, claim)
    most, excess = reservation.amount_in(budget.currency), _excess(database, reservation, budget.currency)
    if most == 0 and not excess:
        return None
    left = EXACT.subtract(budget.amount, EXACT.add(spent, reserved))
    needed = EXACT.add(most or 0, excess if reserved else 0)
    if needed <= left and (left > 0 or (most is not None and not excess)):
        return None
    tags = sorted(claim.resolved.tags.items())
    of = "".join(f", {name} {value!r}" for name, value in tags)
    may_cost = "an amount that is not known" if most is None else f"up to {_short(EXACT.add(most, excess))}"
    return (
        f"The budget {budget.name!r} ({claim.period}{of}) of {budget.amount:f} {budget.currency} does not "
        f"allow the call, which may cost {may_cost}: {_short(spent)} are spent and {_short(reserved)} "
        "reserved by running calls."
    )


def _count(database: Database, claim: Claim, cost: Decimal) -> Decimal | None:
    """Counts a cost; what the budget has spent then, if that is to be told for the first time."""
    before = _spent(database, claim)
    rows = database.execute("SELECT warned FROM lmclient_budget WHERE budget = ?", (claim.key,))
    spent, warned = EXACT.add(before, cost), bool(rows[0][0])
    budget = claim.budget
    share = EXACT.multiply(budget.amount, Decimal(str(budget.warn_at)))
    due = spent >= share and (not warned or before < share)  # the amount may have been raised since
    database.execute(
        "UPDATE lmclient_budget SET spent = ?, warned = ? WHERE budget = ?",
        (_text(spent), int(due or warned), claim.key),
    )
    return spent if due else None


def _excess(database: Database, reservation: Reservation, currency: str) -> Decimal:
    """The most that a call of this payer has cost beyond its worst case."""
    query = "SELECT amount FROM lmclient_excess WHERE payer = ? AND currency = ?"
    rows = database.execute(query, (reservation.payer, currency))
    return Decimal(rows[0][0]) if rows else Decimal(0)


def _learn(database: Database, reservation: Reservation, currency: str, excess: Decimal) -> None:
    if excess > _excess(database, reservation, currency):
        database.execute(
            "INSERT INTO lmclient_excess (payer, currency, amount) VALUES (?, ?, ?) "
            "ON CONFLICT (payer, currency) DO UPDATE SET amount = excluded.amount",
            (reservation.payer, currency, _text(excess)),
        )


def _short(amount: Decimal) -> str:
    return f"{amount.normalize():f}"


def _text(amount: Decimal) -> str:
    return format(amount, "f")
