"""Putting `extra_body` into a request body whose fields are nested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with what `extra` adds; objects in both are merged, anything else is replaced.

    So `{"generationConfig": {"topK": 5}}` does not take away the other settings beside `topK`.
    """
    merged = dict(body)
    for name, value in extra.items():
        before = merged.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = merge(before, value)
        merged[name] = value
    return merged
