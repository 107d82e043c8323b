"""The usage object of chat and text completions, under all the names that servers give its parts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lmclient.core.usage import Usage
from lmclient.protocols.base import as_dict, as_int

_KNOWN = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
_PARTS = {
    "cached_tokens": "cached_input_tokens",
    "num_cached_tokens": "cached_input_tokens",
    "prompt_cache_hit_tokens": "cached_input_tokens",
    "cache_read_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "cache_creation_tokens": "cache_write_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "ephemeral_1h_input_tokens": "cache_write_1h_tokens",
    "reasoning_tokens": "reasoning_tokens",
}
"""What servers call the parts of input and output, in the usage itself or in its details."""
_INPUT_DETAILS = frozenset({"prompt_tokens_details", "cache_creation_token_details", "cache_creation"})
"""Tables of such parts; the last two say for how long Anthropic's cache keeps what was written."""


def read_usage(usage: dict[str, Any], timings: object) -> Usage | None:
    """The usage, or from llama.cpp's `timings` where there is none; None if neither says anything."""
    prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if prompt is None and output is None:
        return _read_timings(as_dict(timings))
    details = {key: value for key, value in usage.items() if key not in _KNOWN and value is not None}
    parts: dict[str, Any] = {}
    for key, value in details.items():
        if key in _INPUT_DETAILS:
            _add_parts(value, parts)
        elif key == "completion_tokens_details":
            parts["reasoning_tokens"] = as_int(as_dict(value).get("reasoning_tokens"))
    if not _PARTS.keys().isdisjoint(details):
        _add_parts(details, parts)
    input_tokens, output_tokens = as_int(prompt), as_int(output)
    # xAI and others count the reasoning beside the output; then only the total has both.
    if (reasoning := parts.get("reasoning_tokens")) and as_int(usage.get("total_tokens")) == (
        input_tokens + output_tokens + reasoning
    ):
        output_tokens += reasoning
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, details=details, **parts)


def _add_parts(table: object, parts: dict[str, Any]) -> None:
    """Adds the counts in a table, and in tables within it, that are not known yet."""
    if not isinstance(table, dict):
        return
    for key, value in table.items():
        part = _PARTS.get(key)
        if part is not None and value and not parts.get(part):
            parts[part] = as_int(value)
        elif key in _INPUT_DETAILS and isinstance(value, dict) and "ephemeral_1h_input_tokens" in value:
            _add_parts(value, parts)


def _read_timings(timings: dict[str, Any]) -> Usage | None:
    if timings.get("predicted_n") is None:
        return None
    cached = as_int(timings.get("cache_n"))
    return Usage(
        input_tokens=as_int(timings.get("prompt_n")) + cached,
        cached_input_tokens=cached,
        output_tokens=as_int(timings.get("predicted_n")),
    )


def read_cost(usage: dict[str, Any]) -> Decimal | None:
    """The cost in US dollars that OpenRouter and others report beside the counts."""
    cost = usage.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or cost < 0:
        return None
    stated = Decimal(str(cost))
    return stated if stated.is_finite() else None
