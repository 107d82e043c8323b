"""The usage object of chat and text completions, under all the names that servers give its parts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lmclient.core.usage import Usage
from lmclient.protocols.base import as_dict, as_int

_KNOWN = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})


def read_usage(usage: dict[str, Any], timings: dict[str, Any]) -> Usage | None:
    """The usage, or from llama.cpp's `timings` where there is none; None if neither says anything."""
    if usage.get("prompt_tokens") is not None or usage.get("completion_tokens") is not None:
        prompt = as_dict(usage.get("prompt_tokens_details"))
        output = as_dict(usage.get("completion_tokens_details"))
        return Usage(
            input_tokens=as_int(usage.get("prompt_tokens")),
            cached_input_tokens=_first(
                prompt.get("cached_tokens"),
                usage.get("cached_tokens"),
                usage.get("num_cached_tokens"),
                usage.get("prompt_cache_hit_tokens"),
            ),
            cache_write_tokens=_first(prompt.get("cache_write_tokens"), prompt.get("cache_creation_tokens")),
            output_tokens=as_int(usage.get("completion_tokens")),
            reasoning_tokens=_first(output.get("reasoning_tokens"), usage.get("reasoning_tokens")),
            details={key: value for key, value in usage.items() if key not in _KNOWN and value is not None},
        )
    if timings.get("predicted_n") is not None:
        cached = as_int(timings.get("cache_n"))
        return Usage(
            input_tokens=as_int(timings.get("prompt_n")) + cached,
            cached_input_tokens=cached,
            output_tokens=as_int(timings.get("predicted_n")),
        )
    return None


def read_cost(usage: dict[str, Any]) -> Decimal | None:
    """The cost in US dollars that OpenRouter and others report beside the counts."""
    cost = usage.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or cost < 0:
        return None
    return Decimal(str(cost))


def _first(*values: object) -> int:
    for value in values:
        if value and (count := as_int(value)):
            return count
    return 0
