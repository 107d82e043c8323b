"""Refuses the calls that a budget does not allow, before they are sent."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, TypeVar

from lmclient import errors
from lmclient.core.completion import Completion
from lmclient.core.money import EXACT
from lmclient.core.request import Attempt, CompletionRequest, own_attempts, seconds_left
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import BudgetExceededError, ConfigurationError, LMClientError
from lmclient.interceptors.base import CallNext
from lmclient.interceptors.worst_case import worst_case
from lmclient.profiles.model import ModelProfile
from lmclient.settings import Budget
from lmclient.spend.budgets import (
    Claim,
    Due,
    Reservation,
    claims_on,
    renewed,
    reservation,
    reserve_after,
    settle_all,
)
from lmclient.spend.ledger import Ledger

_Over = tuple[Reservation, Mapping[str, Decimal]]
"""A call that is over: what it held, and what it cost by currency."""
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
    reserves the worst case anew. Free profiles (price 0) pass a spent budget, until an answer has cost
    something after all. A profile without a known price reserves nothing before an answer has cost
    something, with a warning in the log, and passes until the budget is used up.

    Raises `BudgetExceededError`; `LMClientError` if the ledger cannot be written, for a call that
    cannot be counted is not sent; and `ConfigurationError` for two budgets that differ in nothing but
    their amounts. `on_warning` (by default a warning in the log) hears of each budget
    that reaches `warn_at`, with the values of its tags in place of `"*"`; what it raises is logged.
    """

    def __init__(
        self, budgets: Sequence[Budget], ledger: Ledger, *, on_warning: OnWarning | None = None
    ) -> None:
        self._budgets = tuple(budgets)
        _check_alike(self._budgets)
        self._ledger = ledger
        self._on_warning = on_warning or _log_warning
        self._unpriced: set[str] = set()
        self._uncounted: list[_Over] = []
        self._pid = os.getpid()
        self._running: set[asyncio.Task[Any]] = set()

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        profile = request.profile
        claims = self._claims(request)
        if not claims:
            return await call_next(request)
        most = worst_case(request)
        if most.cost is None:
            self._warn_of_unpriced(profile.name)
        request = own_attempts(request)
        left = seconds_left(request)
        seconds = LONGEST_CALL if left is None else left
        held = reservation(claims, most.cost, most.currency, _payer(profile), seconds)
        call = _Call(self, request, held)
        await self._reserve(held, request)
        token = _current.set(call)
        try:
            stream = await call_next(request)
        except BaseException:
            await self._settle(call.held, call.costs())
            raise
        finally:
            with contextlib.suppress(ValueError):  # another context: the call is being thrown away
                _current.reset(token)

        async def end(completion: Completion, error: BaseException | None) -> None:
            await self._settle(call.held, call.costs(completion))

        stream.on_end(end)
        return stream

    async def retries(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        """Checks the budgets again before a further try.

        That is if failed ones have cost something, or the budgets' periods have changed meanwhile.
        """
        call = _current.get()
        if call is None or not call.is_of(self, request) or not call.was_tried:
            return await call_next(request)
        costs, claims = call.costs(), self._claims(request)
        if costs or claims != call.held.claims:
            failed, over = request.attempts[-1], (call.held, costs)
            call.go_on(renewed(call.held, claims))
            try:
                await self._reserve(call.held, request, over)
            except LMClientError as error:
                error.partial = failed.completion
                raise error from failed.error
        return await call_next(request)

    async def aclose(self) -> None:
        """Waits for what still has to be counted, and closes the ledger."""
        loop = asyncio.get_running_loop()
        while running := [task for task in self._running if task.get_loop() is loop]:
            await asyncio.wait(running)
        if left := self._take_left():
            await self._count(left)
        await self._ledger.aclose()

    def _claims(self, request: CompletionRequest) -> list[Claim]:
        now = datetime.datetime.now(datetime.UTC)
        return claims_on(self._budgets, request.profile.name, request.tags, now)

    async def _reserve(self, held: Reservation, request: CompletionRequest, *over: _Over) -> None:
        """Counts what is over, what could not be counted earlier included, and makes a reservation."""
        name = request.profile.name
        check = self._in_background(self._check([*self._take_left(), *over], held))
        try:
            async with asyncio.timeout(seconds_left(request)):
                refusal = await asyncio.shield(check)
        except (asyncio.CancelledError, TimeoutError) as error:
            # It is made all the same, or has been; the ledger undoes it after that.
            self._in_background(self._count([(held, {})]))
            if isinstance(error, asyncio.CancelledError):
                raise
            raise errors.TimeoutError(
                f"Profile {name!r}: the call's time ran out before its budgets were checked; the ledger may "
                "be locked by another process."
            ) from error
        if refusal is not None:
            raise BudgetExceededError(f"Profile {name!r}: {refusal}")

    async def _check(self, over: list[_Over], held: Reservation) -> str | None:
        try:
            due, refusal = await self._ledger.run(reserve_after(over, held))
        except BaseException as error:
            self._uncounted += over
            if isinstance(error, LMClientError) or not isinstance(error, Exception):
                raise
            # Those of two database drivers.
            raise LMClientError(f"The budgets cannot be checked in the ledger: {error}") from error
        self._tell(due)
        return refusal

    async def _settle(self, held: Reservation, costs: Mapping[str, Decimal]) -> None:
        """Counts what a call cost, also when the caller is cancelled meanwhile."""
        await asyncio.shield(self._in_background(self._count([(held, costs)])))

    async def _count(self, over: list[_Over]) -> None:
        try:
            due = await self._ledger.run(settle_all(over))
        except Exception as error:  # the answers are there and paid for: their callers get them
            if isinstance(error, LMClientError):  # the ledger cannot be written now
                self._uncounted += over
            paid = ", ".join(f"{cost} {currency}" for _, costs in over for currency, cost in costs.items())
            if paid:
                logger.error(
                    "What a call has cost (%s) cannot be counted in its budgets now: %s", paid, error
                )
            return
        self._tell(due)

    def _take_left(self) -> list[_Over]:
        """What could not be counted when its call was over; after a fork, that is left to the parent."""
        if self._pid != os.getpid():
            self._pid, self._uncounted = os.getpid(), []
        left, self._uncounted = self._uncounted, []
        return left

    def _tell(self, due: Due) -> None:
        for budget, spent in due:
            try:
                self._on_warning(budget, spent)
            except Exception:  # the application's; the call has nothing to do with it
                logger.exception("The warning of the budget %r failed.", budget.name)

    def _in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
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


def _check_alike(budgets: Sequence[Budget]) -> None:
    """Two that differ in their amounts alone would be counted as one, and everything in it twice."""
    seen: list[Budget] = []
    for budget in budgets:
        alike = budget.model_copy(update={"amount": Decimal(0), "warn_at": 1.0})
        if alike in seen:
            raise ConfigurationError(
                f"Two budgets called {budget.name!r} count the same calls; give one of them another name."
            )
        seen.append(alike)


def _payer(profile: ModelProfile) -> str:
    """The profile as far as it decides what its calls cost; with other prices it is another one."""
    prices = profile.cost.model_dump_json(exclude_none=True)
    return json.dumps([profile.name, profile.provider, profile.model, prices])


class _Call:
    """A call that holds something of its budgets."""

    def __init__(self, interceptor: BudgetInterceptor, request: CompletionRequest, held: Reservation) -> None:
        self.held = held
        self._interceptor = interceptor
        self._request = request
        self._first = len(request.attempts)
        self._counted: list[Attempt] = []

    def is_of(self, interceptor: BudgetInterceptor, request: CompletionRequest) -> bool:
        """Whether the request is a try of this call, and not one of another call that was made within it."""
        return self._interceptor is interceptor and self._request.id == request.id

    @property
    def was_tried(self) -> bool:
        """Whether an attempt was made."""
        return len(self._request.attempts) > self._first

    def go_on(self, held: Reservation) -> None:
        """What the attempts up to now have cost is counted; another try holds another reservation."""
        self.held = held
        self._counted += self._uncounted()

    def costs(self, completion: Completion | None = None) -> dict[str, Decimal]:
        """What the attempts that are not counted cost, by currency, failed ones included."""
        answers = [attempt.completion for attempt in self._uncounted() if attempt.completion is not None]
        if completion is not None and not self.was_tried:
            answers = [completion]  # an interceptor's own
        costs: dict[str, Decimal] = {}
        for answer in answers:
            if answer.cost is not None:
                costs[answer.currency] = EXACT.add(costs.get(answer.currency, Decimal(0)), answer.cost)
        return costs

    def _uncounted(self) -> list[Attempt]:
        """The attempts that are over and not counted; one beside them may still run."""
        counted = set(map(id, self._counted))
        return [
            attempt
            for attempt in self._request.attempts[self._first :]
            if id(attempt) not in counted and (attempt.completion is not None or attempt.error is not None)
        ]


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
