"""What the calls of a flow used, added up."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.money import EXACT


class FlowStatistics(msgspec.Struct):
    """The calls of a whole walk (and of earlier ones on the same context), failed ones included.

    `requests` counts HTTP requests, `cached` answers from the cache, whose tokens are not counted
    again. `input_tokens` counts all input, `output_tokens` all output; the others are parts of
    those two. `costs` are by currency. `duration` is the sum of all calls, `effective_duration` the
    time in which at least one call was running, both in seconds.
    """

    requests: int = 0
    cached: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    costs: dict[str, Decimal] = {}
    duration: float = 0.0
    effective_duration: float = 0.0
    in_flight: int = 0
    """Calls that are running now."""
    busy_since: float = 0.0
    """When the first of the calls that are running now began, on the clock that `started` was given."""

    @property
    def cost(self) -> Decimal | None:
        """What all calls cost together, None where no price is known or currencies differ."""
        return only_cost(self.costs)

    @property
    def tokens_per_second(self) -> float:
        """Input and output tokens per second of `effective_duration`."""
        tokens = self.input_tokens + self.output_tokens
        return tokens / self.effective_duration if self.effective_duration else 0.0

    @property
    def output_tokens_per_second(self) -> float:
        """Output tokens per second of `effective_duration`."""
        return self.output_tokens / self.effective_duration if self.effective_duration else 0.0

    def started(self, now: float) -> None:
        """A call begins at `now`, in seconds of a monotonic clock."""
        if self.in_flight == 0:
            self.busy_since = now
        self.in_flight += 1

    def ended(self, now: float, duration: float) -> None:
        """A call ends at `now`, after `duration` seconds."""
        self.duration += duration
        self.in_flight -= 1
        if self.in_flight == 0:
            self.effective_duration += now - self.busy_since

    def add(self, completion: Completion) -> None:
        """Adds what an answer used, or the part of one that had arrived when its call failed."""
        add_cost(self.costs, completion)
        if completion.cached:
            self.cached += 1
            return
        usage = completion.usage
        self.requests += completion.requests or 1
        self.input_tokens += usage.input_tokens
        self.cached_input_tokens += usage.cached_input_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.output_tokens += usage.output_tokens
        self.reasoning_tokens += usage.reasoning_tokens


def add_cost(costs: dict[str, Decimal], completion: Completion) -> None:
    """Adds what an answer cost, if that is known, to the costs in its currency."""
    if completion.cost is not None:
        known = costs.get(completion.currency, Decimal(0))
        costs[completion.currency] = EXACT.add(known, completion.cost)


def shown_costs(costs: dict[str, Decimal]) -> str:
    """The costs as text, one beside the other."""
    return ", ".join(f"{cost.normalize(EXACT):f} {currency}" for currency, cost in costs.items())


def only_cost(costs: dict[str, Decimal]) -> Decimal | None:
    """The cost if there is one currency; different ones are never added up."""
    return next(iter(costs.values())) if len(costs) == 1 else None
