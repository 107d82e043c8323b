"""A walk as data: one entry for each agent that ran, in each branch."""

from __future__ import annotations

import datetime
from decimal import Decimal

import msgspec

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.usage import Usage
from lmclient.flows.statistics import add_cost, only_cost


class TraceStep(msgspec.Struct, kw_only=True):
    """One agent in one branch.

    `parents` are the ids of the steps that its context came from: several after a merge. `branch` is
    its number, from 1, and the count of branches. `category` and `profile` are None where no model
    was called. `started` is UTC, `duration` seconds. `usage` and `costs`, by currency, add up all calls
    of the step; `cost` is that in the only `currency`, None where no price is known or currencies
    differ. `finish_reason` is that of the last answer. `error` says what went wrong.
    """

    id: int
    agent: str
    parents: tuple[int, ...] = ()
    branch: tuple[int, int] | None = None
    category: str | None = None
    profile: str | None = None
    started: datetime.datetime
    duration: float = 0.0
    calls: int = 0
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = "USD"
    costs: dict[str, Decimal] = {}
    finish_reason: FinishReason | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if self.cost is not None and not self.costs:
            self.costs = {self.currency: self.cost}

    @property
    def parent(self) -> int | None:
        """The first of `parents`, None for the first step of a walk."""
        return self.parents[0] if self.parents else None

    def add(self, completion: Completion) -> None:
        """Adds one call: its answer, or the part of one that had arrived when it failed."""
        self.calls += 1
        self.profile = completion.profile or self.profile
        self.finish_reason = completion.finish_reason
        if not completion.cached:
            self.usage = _sum(self.usage, completion.usage)
        self.costs = dict(self.costs)  # a copy of the step keeps its own
        add_cost(self.costs, completion)
        self.cost = only_cost(self.costs)
        self.currency = next(iter(self.costs), self.currency)


def _sum(first: Usage, second: Usage) -> Usage:
    if first == Usage():
        return second
    return Usage(
        input_tokens=first.input_tokens + second.input_tokens,
        cached_input_tokens=first.cached_input_tokens + second.cached_input_tokens,
        cache_write_tokens=first.cache_write_tokens + second.cache_write_tokens,
        cache_write_1h_tokens=first.cache_write_1h_tokens + second.cache_write_1h_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        reasoning_tokens=first.reasoning_tokens + second.reasoning_tokens,
        estimated=first.estimated or second.estimated,
    )
