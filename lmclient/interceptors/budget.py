"""Refuses the calls that a budget does not allow, before they are sent."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, TypeVar

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import BudgetExceededError, LMClientError
from lmclient.interceptors.base import CallNext
from lmclient.interceptors.worst_case import worst_case
from lmclient.profiles.model import ModelProfile
from lmclient.settings import Budget
from lmclient.spend.budgets import Due, Reservation, claims_on, renew, reservation, reserve, settle
from lmclient.spend.database import Database
from lmclient.spend.ledger import EXACT, Ledger

T = TypeVar("T")
logger = logging.getLogger("lmclient.budget")

LONGEST_CALL = 3600.0
"""Seconds after which a call without a deadline counts as dead."""

OnWarning = Callable[[Budget, Decimal], None]
"""Called with a budget and what it has spent, once per period, when that reaches `warn_at`."""


class BudgetInterceptor:
    """Keeps calls within budgets: a day's, a month's or in total, per profile or value of a tag.

    A call reserves its worst case before it is sent: a token for each byte of the prompt, and as many
    answers as it asks for, each as long as its limit allows. When it is over, what it really cost is
    counted instead, estimated if the provider did not say; that is nothing where nothing arrived.
    The state is in the ledger's database, so that processes share it; the reservations of one that dies
    lapse after the deadlines of its calls.

    What a call costs counts in the budgets of that currency, whatever the profile's prices say. What it
    costs beyond its worst case is remembered, and held in addition by all calls of its profile, except
    that a call which has a budget to itself needs no room for it.

    Stands inside of the fallback: the profile that is asked is the one that is checked. Each call of
    `retries`, the link to put inside of the retries, counts what the failed tries have cost, and
    reserves the worst case anew. Free profiles (price
    0) pass a spent budget, until an answer has cost something after all. A profile without a known price
    reserves nothing before an answer has cost something, with a warning in the log, and passes until the
    budget is used up.

    Raises `BudgetExceededError`; and `LMClientError` if the ledger cannot be written, for a call that
    cannot be counted is not sent. `on_warning` (by default a warning in the log) hears of each budget
    that reaches `warn_at`, with the values of its tags in place of `"*"`; what it raises is logged.
    """

    def __init__(
        self, budgets: Sequence[Budget], ledger: Ledger, *, on_warning: OnWarning | None = None
    ) -> None:
        self._budgets = tuple(budgets)
        self._ledger = ledger
        self._on_warning = on_warning or _log_warning
        self._unpriced: set[str] = set()
        self._uncounted: list[tuple[Reservation, Mapping[str, Decimal]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        profile = request.profile
        now = datetime.datetime.now(datetime.UTC)
        claims = claims_on(self._budgets, profile.name, request.tags, now)
        if not claims:
            return await call_next(request)
        most = worst_case(request)
        if most.cost is None:
            self._warn_of_unpriced(profile.name)
        left = LONGEST_CALL
        if request.deadline is not None and math.isfinite(request.deadline):
            left = request.deadline - time.monotonic()
        held = reservation(claims, most.cost, most.currency, _payer(profile), left)
        await self._reserve(held, profile)
        call = _Call(self, request, held)
        token = _current.set(call)
        try:
            stream = await call_next(request)
        except BaseException:
            await self._settle(held, call.costs())
            raise
        finally:
            with contextlib.suppress(ValueError):  # another context: the call is being thrown away
                _current.reset(token)

        async def end(completion: Completion, error: BaseException | None) -> None:
            await self._settle(held, call.costs(completion))

        stream.on_end(end)
        return stream

    async def retries(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        """Checks the budgets again before a further try of a call whose failed ones have cost something."""
        call = _current.get()
        if call is not None and call.interceptor is self and (costs := call.costs()):
            call.first = len(request.attempts)
            due, refusal = await self._checked(renew(call.held, costs))
            self._tell(due)
            if refusal is not None:
                failed = request.attempts[-1]
                error = _exceeded(request.profile, refusal)
                error.partial = failed.completion
                raise error from failed.error
        return await call_next(request)

    async def aclose(self) -> None:
        """Waits for what still has to be counted, and closes the ledger."""
        await self._count_left_over()
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(task for task in self._running if task.get_loop() is loop))
        await self._ledger.aclose()

    async def _reserve(self, held: Reservation, profile: ModelProfile) -> None:
        await self._count_left_over()
        try:
            refusal = await self._checked(reserve(held))
        except asyncio.CancelledError:
            # It is made all the same, or has been; the ledger undoes it after that.
            self._in_background(self._count(held, {}))
            raise
        if refusal is not None:
            raise _exceeded(profile, refusal)

    async def _checked(self, work: Callable[[Database], T]) -> T:
        try:
            return await self._ledger.run(work)
        except LMClientError:
            raise
        except Exception as error:  # those of two database drivers
            raise LMClientError(
                f"The budgets cannot be checked: the ledger cannot be written ({error}). Nothing was sent."
            ) from error

    async def _settle(self, held: Reservation, costs: Mapping[str, Decimal]) -> None:
        """Counts what a call cost, also when the caller is cancelled meanwhile."""
        await asyncio.shield(self._in_background(self._count(held, costs)))

    async def _count(self, held: Reservation, costs: Mapping[str, Decimal]) -> None:
        try:
            due = await self._ledger.run(settle(held, costs))
        except Exception as error:  # the answer is there and paid for: its caller gets it
            if isinstance(error, LMClientError):  # the ledger cannot be written now
                self._uncounted.append((held, costs))
            paid = ", ".join(f"{cost} {currency}" for currency, cost in costs.items())
            logger.error("What a call has cost (%s) cannot be counted in its budgets now: %s", paid, error)
            return
        self._tell(due)

    async def _count_left_over(self) -> None:
        """Counts what could not be counted when its call was over."""
        left, self._uncounted = self._uncounted, []
        for held, costs in left:
            await self._settle(held, costs)

    def _tell(self, due: Due) -> None:
        for budget, spent in due:
            try:
                self._on_warning(budget, spent)
            except Exception:  # the application's; the call has nothing to do with it
                logger.exception("The warning of the budget %r failed.", budget.name)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _warn_of_unpriced(self, profile: str) -> None:
        if profile not in self._unpriced:
            self._unpriced.add(profile)
            logger.warning(
                "Profile %r has no known price: its calls reserve nothing of their budgets. "
                "Set cost.input and cost.output, 0 if it is free.",
                profile,
            )


def _exceeded(profile: ModelProfile, refusal: str) -> BudgetExceededError:
    return BudgetExceededError(f"Profile {profile.name!r}: {refusal}")


def _payer(profile: ModelProfile) -> str:
    """The profile as far as it decides what its calls cost; with other prices it is another one."""
    prices = profile.cost.model_dump_json(exclude_none=True)
    return json.dumps([profile.name, profile.provider, profile.model, prices])


class _Call:
    """A call that holds something of its budgets; `first` is the attempt from which on none is counted."""

    def __init__(self, interceptor: BudgetInterceptor, request: CompletionRequest, held: Reservation) -> None:
        self.interceptor = interceptor
        self.held = held
        self.first = len(request.attempts)
        self._attempts = request.attempts

    def costs(self, completion: Completion | None = None) -> dict[str, Decimal]:
        """What the attempts since `first` cost, by currency, failed ones included."""
        attempts = self._attempts[self.first :]
        answers = [attempt.completion for attempt in attempts if attempt.completion is not None]
        if completion is not None and not attempts:
            answers = [completion]  # an interceptor's own
        costs: dict[str, Decimal] = {}
        for answer in answers:
            if answer.cost is not None:
                costs[answer.currency] = EXACT.add(costs.get(answer.currency, Decimal(0)), answer.cost)
        return costs


_current: ContextVar[_Call | None] = ContextVar("lmclient_budgeted", default=None)


def _log_warning(budget: Budget, spent: Decimal) -> None:
    logger.warning(
        "The budget %r (%s%s) has spent %s of %s %s.",
        budget.name,
        budget.period,
        "".join(f", {name} {value!r}" for name, value in sorted(budget.tags.items())),
        format(spent, "f"),
        format(budget.amount, "f"),
        budget.currency,
    )
