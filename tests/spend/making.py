"""Records for tests."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

from lmclient import SpendRecord

NOON = datetime.datetime(2026, 3, 14, 12, 0, tzinfo=datetime.UTC)
_numbers = itertools.count(1)


def record(**values: Any) -> SpendRecord:
    """A record of a call of its own."""
    given = {
        "call_id": f"call-{next(_numbers)}",
        "attempt": 1,
        "time": NOON,
        "profile": "mini",
        "provider": "openai-chat",
        "model": "mock",
        "finish_reason": "stop",
    }
    return SpendRecord(**{**given, **values})
