"""`client.spend`: what the ledger tells, for code with and without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from decimal import Decimal
from typing import Any, ParamSpec, Protocol, TypeVar

from lmclient.spend import reports
from lmclient.spend.ledger import Ledger
from lmclient.spend.records import SpendRecord
from lmclient.spend.reports import SpendRow, When

P = ParamSpec("P")
T = TypeVar("T")
Where = Mapping[str, str | None]


class AsyncSpend:
    """Reads the ledger of a client.

    Every method raises `ConfigurationError` if it cannot be opened, and `LMClientError` for arguments
    that are none.

    `since` and `until` are a `date` (a day in UTC; `until` includes it) or a `datetime` (`until`
    excludes it; one without a time zone is local time). `where` takes what `by` takes, with the value
    to look for, or None for rows without one. Amounts of different currencies are never added up.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def report(
        self,
        by: Sequence[str] = ("day",),
        *,
        since: When | None = None,
        until: When | None = None,
        where: Where | None = None,
    ) -> list[SpendRow]:
        """One row for each combination of the values of `by`, sorted by them, and currency.

        `by` takes "day" (in UTC), "category", "profile", "provider", "model", "currency" and
        "tag:NAME". Raises `LMClientError` for others.
        """
        names = (by,) if isinstance(by, str) else by
        return await self._ledger.read(reports.report(names, since, until, where or {}))

    async def total(
        self, since: When | None = None, until: When | None = None, *, where: Where | None = None
    ) -> dict[str, Decimal]:
        """The cost in each currency; one in which no cost is known is left out."""
        return reports.total(await self.report((), since=since, until=until, where=where))

    async def records(self, limit: int = 100) -> list[SpendRecord]:
        """The records that were booked last, the newest first, `limit` at most."""
        return await self._ledger.read(reports.records(limit))


class Run(Protocol):
    """Runs a coroutine function on a loop elsewhere, and returns its result."""

    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T: ...


class Spend:
    """Reads the ledger of a client without an event loop; see `AsyncSpend`."""

    def __init__(self, spend: AsyncSpend, run: Run) -> None:
        self._spend = spend
        self._run = run

    def report(
        self,
        by: Sequence[str] = ("day",),
        *,
        since: When | None = None,
        until: When | None = None,
        where: Where | None = None,
    ) -> list[SpendRow]:
        """One row for each combination of the values of `by`, sorted by them, and currency."""
        return self._run(self._spend.report, by, since=since, until=until, where=where)

    def total(
        self, since: When | None = None, until: When | None = None, *, where: Where | None = None
    ) -> dict[str, Decimal]:
        """The cost in each currency; one in which no cost is known is left out."""
        return self._run(self._spend.total, since, until, where=where)

    def records(self, limit: int = 100) -> list[SpendRecord]:
        """The records that were booked last, the newest first."""
        return self._run(self._spend.records, limit)
