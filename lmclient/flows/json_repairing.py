"""Repairs the JSON that models get wrong, in bounded time.

What json-repair reads otherwise than a person would is tidied first, outside of strings only.
"""

from __future__ import annotations

import json
import math
import re
import time
from typing import Any, SupportsIndex

import json_repair

from lmclient.flows.handlers_failure import Unreadable
from lmclient.flows.json_tidying import tidied

MAX_DEPTH = 100
"""Levels of nesting. No answer means more; parsers spend minutes on hostile ones."""

MAX_STEPS = 1_000_000
"""Looks at characters that the repair of one answer may take: half a second, three times what a
broken answer of 100 KB takes."""

MAX_SECONDS = 2.0
"""The same for hostile answers that it takes long over without looking at them."""

TOO_DEEP = f"its JSON is nested deeper than {MAX_DEPTH} levels"
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda name: None)
_BRACKETS = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class TooBroken(Unreadable):
    """The repair of an answer takes too long."""


class Meter:
    """How much the repairs of one answer may still look at, and until when."""

    def __init__(self) -> None:
        self.left = MAX_STEPS
        self._until = time.monotonic() + MAX_SECONDS

    def count(self, looks: int) -> None:
        """Counts. Raises `TooBroken` beyond the limits."""
        self.left -= looks
        if self.left < 0 or (not self.left & 63 and time.monotonic() > self._until):
            raise TooBroken("its JSON is too broken to be read")


def repair(text: str, meter: Meter) -> Any:
    """The value of broken JSON text that begins with a bracket.

    Raises `Unreadable` if that cannot be told.
    """
    if too_deep(text):
        raise Unreadable(TOO_DEEP)
    text = tidied(text)
    try:
        return cleaned(_DECODER.decode(text))
    except (ValueError, RecursionError):
        pass
    try:
        value = json_repair.repair_json(_Metered(text, meter), return_objects=True, skip_json_loads=True)
    except TooBroken:
        raise
    except Exception:  # json-repair fails on hostile texts in ways of its own, AssertionError among them
        raise Unreadable("its JSON is too broken to be read") from None
    return cleaned(value)


def cleaned(value: Any, depth: int = 0) -> Any:
    """The JSON value as one that can be sent on: no half surrogate pairs, no infinite numbers.

    Raises `Unreadable` if it is nested too deep.
    """
    if isinstance(value, str):
        plain = str(value)
        return plain if plain.isascii() or not _SURROGATE.search(plain) else _whole_characters(plain)
    if depth > MAX_DEPTH:
        raise Unreadable(TOO_DEEP)
    if isinstance(value, dict):
        return {cleaned(str(key)): cleaned(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item, depth + 1) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _whole_characters(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def too_deep(text: str) -> bool:
    """Whether the text may be nested deeper than allowed: strings are not told apart, at little cost."""
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        if bracket.group() in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif depth:
            depth -= 1
    return False


class _Metered(str):
    """A text that counts how often it is looked at: json-repair is quadratic on some hostile texts."""

    meter: Meter

    def __new__(cls, text: str, meter: Meter) -> _Metered:
        metered = super().__new__(cls, text)
        metered.meter = meter
        return metered

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        part = super().__getitem__(index)
        if isinstance(index, slice):
            self.meter.count(len(part) >> 6)
            part = _Metered(part, self.meter)
        self.meter.count(1)
        return part

    def __add__(self, other: str) -> _Metered:
        return _Metered(super().__add__(other), self.meter)
