"""The usage object of OpenAI's APIs, under all the names that servers give its parts."""

from __future__ import annotations

from typing import Any

from lmclient.core.usage import Usage
from lmclient.protocols.base import as_count, as_dict, as_int
from lmclient.protocols.stated_usage import StatedUsage, whole_counts

_KNOWN = frozenset({"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens"})
_PARTS = {
    "cached_tokens": "cached_input_tokens",
    "num_cached_tokens": "cached_input_tokens",
    "prompt_cache_hit_tokens": "cached_input_tokens",
    "cache_read_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "cache_creation_tokens": "cache_write_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "ephemeral_5m_input_tokens": "cache_write_5m_tokens",
    "ephemeral_1h_input_tokens": "cache_write_1h_tokens",
    "reasoning_tokens": "reasoning_tokens",
}
"""What servers call the parts of input and output, in the usage itself or in its details."""
_LASTING = frozenset({"cache_creation_token_details", "cache_creation"})
"""Tables that say for how long Anthropic's cache keeps what was written."""
_INPUT_DETAILS = _LASTING | {"prompt_tokens_details", "input_tokens_details"}
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")


def read_usage(usage: dict[str, Any], timings: object = None, model: str = "") -> StatedUsage | None:
    """The usage, or from llama.cpp's `timings` where there is none; None if neither says anything."""
    details = {key: value for key, value in usage.items() if key not in _KNOWN and value is not None}
    parts = _read_parts(details)
    reasoning = parts.get("reasoning_tokens", 0)
    cached, written = parts.get("cached_input_tokens", 0), parts.get("cache_write_tokens", 0)
    input_tokens = _count(usage, "prompt_tokens", "input_tokens")
    output_tokens = _count(usage, "completion_tokens", "output_tokens")
    if (
        input_tokens is None
        or output_tokens is None
        or usage.get("total_tokens") != (input_tokens + output_tokens)
    ):
        input_tokens, output_tokens = whole_counts(
            input_tokens,
            output_tokens,
            as_count(usage.get("total_tokens")),
            input_parts={cached, written, cached + written, *_not_text(details)},
            reasoning=reasoning,
            has_hidden_thoughts="gemini" in model,
        )
    if input_tokens is None and output_tokens is None:
        return _read_timings(as_dict(timings))
    counted = Usage(
        input_tokens=cached + written if input_tokens is None else input_tokens,
        output_tokens=reasoning if output_tokens is None else output_tokens,
        details=details,
        **parts,
    )
    return StatedUsage(counted, input_tokens is not None, output_tokens is not None)


def _not_text(details: dict[str, Any]) -> set[int]:
    """The tokens of images and sounds in the input, each kind and all together."""
    tables = [as_dict(details.get(name)) for name in ("prompt_tokens_details", "input_tokens_details")]
    counts = [as_int(table.get(f"{kind}_tokens")) for table in tables for kind in ("audio", "image", "video")]
    return {*counts, sum(counts)}


def _count(usage: dict[str, Any], name: str, other: str) -> int | None:
    count = as_count(usage.get(name))
    return as_count(usage.get(other)) if count is None else count


def _read_parts(details: dict[str, Any]) -> dict[str, Any]:
    """The parts of input and output, by their names in `Usage`."""
    parts: dict[str, Any] = {}
    for key, value in details.items():
        if key in _INPUT_DETAILS:
            _add_parts(value, parts)
        elif key in _OUTPUT_DETAILS:
            reasoning = as_int(as_dict(value).get("reasoning_tokens"))
            parts["reasoning_tokens"] = max(reasoning, parts.get("reasoning_tokens", 0))
    if not _PARTS.keys().isdisjoint(details):
        _add_parts(details, parts)
    lasting = parts.pop("cache_write_5m_tokens", 0) + parts.get("cache_write_1h_tokens", 0)
    if lasting > parts.get("cache_write_tokens", 0):
        parts["cache_write_tokens"] = lasting
    return parts


def _add_parts(table: object, parts: dict[str, Any]) -> None:
    """Adds the counts in a table, and in tables within it, that are not known yet."""
    if not isinstance(table, dict):
        return
    for key, value in table.items():
        part = _PARTS.get(key)
        if part is not None and value and not parts.get(part):
            parts[part] = as_int(value)
        elif key in _LASTING:
            _add_parts(value, parts)


def _read_timings(timings: dict[str, Any]) -> StatedUsage | None:
    output = as_count(timings.get("predicted_n"))
    if output is None:
        return None
    cached, rest = as_int(timings.get("cache_n")), as_count(timings.get("prompt_n"))
    usage = Usage(input_tokens=(rest or 0) + cached, cached_input_tokens=cached, output_tokens=output)
    return StatedUsage(usage, counts_input=rest is not None)
