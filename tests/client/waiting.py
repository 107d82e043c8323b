"""Waiting for what another thread does."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any


def eventually(condition: Callable[[], Any], seconds: float = 2.0) -> Any:
    """What the condition gives once it holds, or after `seconds`."""
    until = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < until:
        time.sleep(0.002)
    return value


def forget(holder: list[Any]) -> None:
    """Drops what the list holds, and what only that held."""
    holder.clear()
    gc.collect()
