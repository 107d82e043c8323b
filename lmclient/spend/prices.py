"""The price of a usage, exactly: every token is priced once, at the price of its kind."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from lmclient.core.money import EXACT
from lmclient.core.usage import Usage

if TYPE_CHECKING:
    from lmclient.profiles.model import Cost

MILLION = Decimal(1_000_000)


def price(usage: Usage, cost: Cost, factor: Decimal | int = 1) -> Decimal | None:
    """What the usage costs at these prices, in their currency; None if a price is missing.

    Cached reads, cache writes and reasoning are parts of the input and the output; each is priced
    at its own price instead of theirs. Parts that add up to more than the whole are clamped to it.
    `factor` changes all prices alike, such as 0.5 for what a provider answers in a batch.
    """
    if cost.input is None and cost.output is None:
        return None
    counts = clamped(usage)
    tokens_of = {
        "input": counts.input_tokens - counts.cached_input_tokens - counts.cache_write_tokens,
        "cached_input": counts.cached_input_tokens,
        "cache_write": counts.cache_write_tokens - counts.cache_write_1h_tokens,
        "cache_write_1h": counts.cache_write_1h_tokens,
        "output": counts.output_tokens - counts.reasoning_tokens,
        "reasoning": counts.reasoning_tokens,
    }
    total = Decimal(0)
    for kind, tokens in tokens_of.items():
        if tokens:
            each = per_million(cost, kind, counts.input_tokens)
            if each is None:
                return None
            total = EXACT.add(total, EXACT.multiply(tokens, each))
    return EXACT.divide(EXACT.multiply(total, factor), MILLION)


class Counts(NamedTuple):
    """The counts of a usage of which no part is more than its whole."""

    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    cache_write_1h_tokens: int
    output_tokens: int
    reasoning_tokens: int


def clamped(usage: Usage) -> Counts:
    """The counts, parts that add up to more than the whole reduced to it."""
    whole, output = max(usage.input_tokens, 0), max(usage.output_tokens, 0)
    cached = min(max(usage.cached_input_tokens, 0), whole)
    written = min(max(usage.cache_write_tokens, 0), whole - cached)
    return Counts(
        whole,
        cached,
        written,
        min(max(usage.cache_write_1h_tokens, 0), written),
        output,
        min(max(usage.reasoning_tokens, 0), output),
    )


def is_inconsistent(usage: Usage) -> bool:
    """Whether counts of the usage contradict each other, so that `clamped` changes them."""
    written = usage.cache_write_tokens
    return not (
        0 <= usage.cached_input_tokens <= usage.input_tokens - written
        and 0 <= usage.cache_write_1h_tokens <= written
        and 0 <= usage.reasoning_tokens <= usage.output_tokens
    )


INPUT_KINDS = ("input", "cached_input", "cache_write", "cache_write_1h")
OUTPUT_KINDS = ("output", "reasoning")
_DEFAULTS = {
    "cached_input": "input",
    "cache_write": "input",
    "cache_write_1h": "cache_write",
    "reasoning": "output",
}


def per_million(cost: Cost, kind: str, input_tokens: int) -> Decimal | None:
    """The price of a million tokens of one kind. The whole request is in the highest tier that it exceeds."""
    own: Decimal | None = getattr(cost, kind)
    for tier in cost.tiers:
        stated: Decimal | None = getattr(tier, kind)
        if input_tokens > tier.above_input_tokens and stated is not None:
            own = stated
    if own is None and kind in _DEFAULTS:
        return per_million(cost, _DEFAULTS[kind], input_tokens)
    return own
