"""Finds the JSON in what a model says: bare, in a code fence, or between other words."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from lmclient.flows.handlers_failure import Unreadable
from lmclient.flows.json_repairing import MAX_DEPTH, Meter, TooBroken, cleaned, repair

MAX_OPENINGS = 300
"""More brackets that open nothing are not tried."""

MAX_LOOKED_AT = 1_000_000
"""Characters to look at in search of closing brackets."""

_OPENING = re.compile(r"[\[{]")
_FENCE = re.compile(r"(?:```+|~~~+)[^\S\n]*[\w+.-]*[^\S\n]*\n?")
_CLOSING_FENCE = re.compile(r"\n[^\S\n]*(?:```|~~~)[^\S\n]*(?:\n|\Z)")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_WITHOUT_BRACES = re.compile(r'\s*"[^"\n]{1,100}"\s*:')
_ESCAPED = re.compile(r'[\[{]\s*\\"')
_OBJECT_BEGINS = re.compile(r"""\{\s*(?:["'“‘`{$/#}\\&,]|\w|\.\.\.)""")
_ARRAY_BEGINS = re.compile(r"""\[\s*(?:["'“‘`{\[\]\d/#.\\&-]|true|false|null|True|False|None)""")
_COLON = re.compile(r"[:=：]")
_BETWEEN_VALUES = re.compile(r"[\s,;]*(?:(?:[-*•]|\d+[.)])\s+)?")
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda name: None)


class Found(NamedTuple):
    """One JSON value in a text, and where it stands. `exact` says that nothing had to be repaired."""

    value: Any
    start: int
    end: int
    fenced: bool
    exact: bool


def json_values(text: str, *, exact: bool = False) -> list[Any]:
    """The JSON values in the text, the most likely answer first; at least one.

    Objects come before arrays of objects, and those before other arrays (`[1]` may be a footnote); a
    value in a code fence before one in prose; else the earlier first. Objects that follow each other
    like lines are also offered as an array. `exact` leaves out what needs a repair.

    Raises `Unreadable` if there is none.
    """
    text = text.strip().lstrip("\ufeff\u200b")
    whole = _whole(text)
    if isinstance(whole, dict | list):
        return [whole]
    text = _without_thoughts(text)
    if not exact and (inside := _without_fences(text)) and _WITHOUT_BRACES.match(inside):
        return [repair("{" + inside, Meter())]
    found = [one for one in _found(text) if one.exact or not exact]
    if not found:
        raise Unreadable("there is no JSON object or array in it")
    return _by_likelihood(text, found)


def _by_likelihood(text: str, found: list[Found]) -> list[Any]:
    ranked = sorted(found, key=lambda one: (_kind(one.value), not one.fenced))
    values = [one.value for one in ranked]
    series = _series(text, found, ranked[0])
    return [series, *values] if len(series) > 1 else values


def _series(text: str, found: list[Found], first: Found) -> list[Any]:
    """The objects that follow this one with nothing but commas and white space between."""
    series = []
    end = first.start
    for one in found:
        if one.start < end:
            continue
        if not isinstance(one.value, dict) or not _BETWEEN_VALUES.fullmatch(text, end, one.start):
            break
        series.append(one.value)
        end = one.end
    return series


def _kind(value: Any) -> int:
    if isinstance(value, dict):
        return 0 if value else 2
    return 1 if any(isinstance(item, dict) for item in value) else 3


def _whole(text: str) -> Any:
    """The value if the text is nothing but JSON, else None; a text that holds JSON in turn is read, too."""
    try:
        value = _DECODER.decode(text)
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            value = _DECODER.decode(value)
    except (ValueError, RecursionError):
        return None
    return cleaned(value)


def _found(text: str) -> Iterator[Found]:
    fences = [match.end() for match in _FENCE.finditer(text)]
    meter = Meter()
    position = looked_at = 0
    for _ in range(MAX_OPENINGS):
        opening = _OPENING.search(text, position)
        if opening is None or looked_at > MAX_LOOKED_AT:
            return
        start = opening.start()
        fence = bisect_right(fences, start)
        fenced = fence > 0 and not text[fences[fence - 1] : start].strip()
        value, end = _exact(text, start)
        if end:
            if fenced or value != {}:  # in prose that is code
                yield Found(value, start, end, fenced, exact=True)
            position = end
            continue
        end = _end_of_value(text, start, fenced)
        looked_at += len(text) - start
        try:
            value = _mended(text[start:end], meter) if _plausible(text, start, end) else None
        except TooBroken:
            return
        if isinstance(value, dict | list) and value:
            yield Found(value, start, end, fenced, exact=False)
        position = end if value else start + 1


def _exact(text: str, start: int) -> tuple[Any, int]:
    """The value that begins here and where it ends, 0 if it is broken."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        return cleaned(value), end
    except (ValueError, RecursionError, Unreadable):
        return None, 0


def _plausible(text: str, start: int, end: int) -> bool:
    """Whether a bracket opens broken JSON rather than something else: a footnote, a formula, a list."""
    if text[start] == "[":
        return _ARRAY_BEGINS.match(text, start) is not None
    begins = _OBJECT_BEGINS.match(text, start) is not None
    return begins and _COLON.search(text, start, end) is not None


def _mended(region: str, meter: Meter) -> Any:
    if _ESCAPED.match(region):
        region = region.replace('\\"', '"').replace("\\n", "\n")
    try:
        value = repair(region, meter)
    except TooBroken:
        raise
    except Unreadable:
        return None
    if region[0] == "{" and isinstance(value, list):
        objects = [item for item in value if isinstance(item, dict)]
        value = objects if len(objects) == len(value) else objects[0] if objects else None
    return value


def _end_of_value(text: str, start: int, fenced: bool) -> int:
    """Where the broken value that begins here ends: at its closing bracket, its fence, or the text's end."""
    if fenced:
        closing = _CLOSING_FENCE.search(text, start)
        return len(text) if closing is None else closing.start()
    depth = 0
    for token in _TOKEN.finditer(text, start):
        bracket = token.group()
        if bracket in "[{":
            depth += 1
            if depth > MAX_DEPTH:  # it will be refused
                break
        elif bracket in "]}":
            depth -= 1
            if depth == 0:
                return token.end()
    last = max(text.rfind("}", start), text.rfind("]", start)) + 1
    opener, closer = "{}" if text[start] == "{" else "[]"
    closes = text[last - 1 : last] == closer
    closes = closes and text.count(opener, start, last) <= text.count(closer, start, last)
    return last if closes else len(text)


def _without_thoughts(text: str) -> str:
    """What follows the last `</think>` of models that think aloud, if anything does."""
    _, _, after = text.rpartition("</think>")
    return after.strip() or text


def _without_fences(text: str) -> str:
    if not text.startswith(("```", "~~~")):
        return text
    return _FENCE.sub("", text, count=1).rstrip("`~ \n\t")
