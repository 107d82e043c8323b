"""The price of a usage, exactly: every token is priced once, at the price of its kind."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from lmclient.core.usage import Usage

if TYPE_CHECKING:
    from lmclient.profiles.model import Cost

MILLION = Decimal(1_000_000)


def price(usage: Usage, cost: Cost) -> Decimal | None:
    """What the usage costs at these prices, in their currency; None if a price is missing.

    Cached reads, cache writes and reasoning are parts of the input and the output; each is priced
    at its own price instead of theirs. Parts that add up to more than the whole are clamped to it.
    """
    if cost.input is None and cost.output is None:
        return None
    cached = min(usage.cached_input_tokens, usage.input_tokens)
    written = min(usage.cache_write_tokens, usage.input_tokens - cached)
    written_1h = min(usage.cache_write_1h_tokens, written)
    reasoning = min(usage.reasoning_tokens, usage.output_tokens)
    counts = {
        "input": usage.input_tokens - cached - written,
        "cached_input": cached,
        "cache_write": written - written_1h,
        "cache_write_1h": written_1h,
        "output": usage.output_tokens - reasoning,
        "reasoning": reasoning,
    }
    total = Decimal(0)
    for kind, tokens in counts.items():
        if tokens:
            per_million = _per_million(cost, kind, usage.input_tokens)
            if per_million is None:
                return None
            total += tokens * per_million
    return total / MILLION


_DEFAULTS = {
    "cached_input": "input",
    "cache_write": "input",
    "cache_write_1h": "cache_write",
    "reasoning": "output",
}


def _per_million(cost: Cost, kind: str, input_tokens: int) -> Decimal | None:
    """The price of one kind of token. The whole request is in the highest tier that it exceeds."""
    own: Decimal | None = getattr(cost, kind)
    for tier in cost.tiers:
        stated: Decimal | None = getattr(tier, kind)
        if input_tokens > tier.above_input_tokens and stated is not None:
            own = stated
    if own is None and kind in _DEFAULTS:
        return _per_million(cost, _DEFAULTS[kind], input_tokens)
    return own
