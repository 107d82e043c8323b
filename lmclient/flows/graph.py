"""The marks of a context's graph."""

from __future__ import annotations

from lmclient.core.completion import FinishReason
from lmclient.profiles.category import Category

SKIPPED = "○"
STATELESS = "→"
STARTS = "🗨"
GOES_ON = "↴"
FAILED_CALL = "❌"
PASSED = "✓"
FAILED = "✗"
NOT_PARSED = "⚠"
GAVE_UP = "☢"
CONTINUED = "‖"

STOPPED = {
    FinishReason.LENGTH: "⏹",
    FinishReason.CONTENT_FILTER: "⛔",
    FinishReason.TOOL_CALLS: "🔧",
    FinishReason.ERROR: FAILED_CALL,
}
"""Why an answer stopped, where that is worth a mark."""

_CATEGORIES = {category.value for category in Category}


def category_mark(category: str) -> str:
    """The mark of a called category: `M` for `m`; the name of a custom one as it is."""
    return category.upper() if category.lower() in _CATEGORIES else category


def branch_mark(number: int, count: int) -> str:
    """The mark of branch `number`, counted from 1, of `count`."""
    return f"⇉ {number}/{count}"


def merge_mark(before: int, after: int) -> str:
    """The mark of `before` contexts merged into `after`."""
    return f"{before}↣{after}"
