"""What a provider states of tokens and cost, as far as it can be true.

A count that is no count (null, negative, no number) is never a silent 0: it makes its half of the usage
uncounted, for the provider layer to estimate from the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from lmclient.core.money import EXACT
from lmclient.core.usage import Usage
from lmclient.protocols.answer import Answer
from lmclient.protocols.base import as_count, as_dict

_AMOUNT = re.compile(r"\d{1,30}(\.\d{1,60})?([eE][+-]?\d{1,3})?")
_CURRENCY = re.compile(r"[A-Za-z]{3}")
_TICKS_OF_A_DOLLAR = Decimal(10**10)


class StatedUsage(NamedTuple):
    """A usage, and which half of it is not counted; what stands in that half is the least it can be."""

    usage: Usage
    counts_input: bool = True
    counts_output: bool = True


class StatedCost(NamedTuple):
    """The provider's own figure."""

    amount: Decimal
    currency: str = "USD"


def take_usage(answer: Answer, stated: StatedUsage | None, cost: StatedCost | None = None) -> None:
    """Takes what an event states in place of what was stated before; nothing is ever summed up.

    A half that is 0 or not counted this time leaves what was counted before. A cost belongs to the
    counts that it came with.
    """
    if stated is not None:
        before = answer.usage
        if before is not None:
            stated = _completed(stated, before, answer)
            counts = (stated.usage.input_tokens, stated.usage.output_tokens)
            if counts != (before.input_tokens, before.output_tokens):
                answer.cost = None
        answer.usage, answer.counts_input, answer.counts_output = stated
        if stated.usage.output_tokens:
            answer.counted_pieces = answer.pieces
    if cost is not None:
        answer.cost, answer.currency = cost


def _completed(stated: StatedUsage, before: Usage, answer: Answer) -> StatedUsage:
    """The usage with the earlier one's halves where it has none of its own."""
    usage, counts_input, counts_output = stated
    kept: dict[str, Any] = {}
    lacks_input = not counts_input or (not usage.input_tokens and answer.counts_input)
    if lacks_input and before.input_tokens >= usage.input_tokens:
        counts_input = answer.counts_input
        kept = {
            "input_tokens": before.input_tokens,
            "cached_input_tokens": before.cached_input_tokens,
            "cache_write_tokens": before.cache_write_tokens,
            "cache_write_1h_tokens": before.cache_write_1h_tokens,
        }
    lacks_output = not counts_output or (not usage.output_tokens and answer.counts_output)
    if lacks_output and before.output_tokens >= usage.output_tokens:
        counts_output = answer.counts_output
        kept |= {"output_tokens": before.output_tokens, "reasoning_tokens": before.reasoning_tokens}
    if not kept:
        return stated
    usage = msgspec.structs.replace(usage, **kept, details=before.details | usage.details)
    return StatedUsage(usage, counts_input, counts_output)


def whole_counts(
    input: int | None,
    output: int | None,
    total: int | None,
    *,
    input_parts: Collection[int] = (),
    reasoning: int = 0,
    has_hidden_thoughts: bool = False,
) -> tuple[int | None, int | None]:
    """All input and all output, also where servers count a part of them beside them; None is not counted.

    Only the total shows that: Anthropic's cache behind a gateway stands beside the input, as Mistral's
    audio does, and xAI's reasoning beside the output. What no part explains is left out, since totals may
    count other things, except for Gemini, whose compatible endpoint states its thoughts in the total alone.
    """
    if input is None and output is None:
        return None, None
    rest = (total or 0) - (input or 0) - (output or 0)
    if input is None:
        return (rest if rest > 0 else None), output
    if output is None:
        return input, (rest if rest > 0 else None)
    if rest > 0:
        if rest == reasoning or (has_hidden_thoughts and rest not in input_parts):
            return input, output + rest
        return (input + rest if rest in input_parts else input), output
    if reasoning > output and not total:
        return input, output + reasoning  # no part of an output that is less than it
    return input, output


def read_cost(usage: dict[str, Any]) -> StatedCost | None:
    """The cost that OpenRouter, Perplexity, xAI, lmclient's gateway and others state beside the counts.

    It is in US dollars if no currency is named.
    """
    if "cost" not in usage and "cost_in_usd_ticks" not in usage:
        return None
    cost = usage.get("cost")
    amount = _amount(cost.get("total_cost") if isinstance(cost, dict) else cost)
    if amount is None:
        ticks = as_count(usage.get("cost_in_usd_ticks"))
        return None if ticks is None else StatedCost(EXACT.divide(Decimal(ticks), _TICKS_OF_A_DOLLAR))
    if usage.get("is_byok") is True:  # OpenRouter's fee; what the user's own key pays stands beside it
        upstream = _amount(as_dict(usage.get("cost_details")).get("upstream_inference_cost"))
        if upstream is None:
            return None
        amount = EXACT.add(amount, upstream)
    currency = usage.get("cost_currency")
    if isinstance(currency, str) and _CURRENCY.fullmatch(currency):
        return StatedCost(amount, currency.upper())
    return StatedCost(amount)


def _amount(value: object) -> Decimal | None:
    """The amount of money, None if it is negative or no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value)
    return Decimal(text) if _AMOUNT.fullmatch(text) else None
