"""Splits separated text into records as a person would.

The format is RFC 4180 (https://www.rfc-editor.org/rfc/rfc4180), with what models make of it: spaces
around fields, backslashes before quotes, quotes inside of quotes, quotes that nobody closes, and the
borders of Markdown tables.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

MAX_QUOTED = 20_000
"""Characters of the longest quoted field."""

MAX_INNER_QUOTES = 30
"""Quotes that may stand unescaped in a quoted field."""

_CLOSING = {'"': '"', "“": "”", "'": "'"}


class Record(NamedTuple):
    """One record: its fields, where they begin in its `text`, and whether a blank line stands before."""

    fields: list[str]
    starts: list[int]
    text: str
    after_blank: bool

    def rest(self, number: int) -> str:
        """The text from the field with this number on, as it stands there."""
        return self.text[self.starts[number] :].strip().removesuffix("|").rstrip()


def records(text: str, separator: str) -> list[Record]:
    """The records of the text; blank lines are left out."""
    found: list[Record] = []
    position, blank = 0, False
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        if not text[position:end].strip():
            blank, position = True, end + 1
            continue
        record, position = _record(text, position, separator, blank)
        blank = False
        found.append(record)
    return found


class _Ends(NamedTuple):
    """Where a field ends: at a separator or line end, and which closing quotes stand before one."""

    field: re.Pattern[str]
    quoted: re.Pattern[str]


@functools.cache  # one for each of the few separators
def _ends(separator: str) -> _Ends:
    mark = re.escape(separator)
    return _Ends(re.compile(rf"[{mark}\n]|\Z"), re.compile(rf"[^\S\n{mark}]*(?=[{mark}\n]|\Z)"))


def _record(text: str, start: int, separator: str, after_blank: bool) -> tuple[Record, int]:
    """The record that begins here, and where the next one does."""
    position = start
    bordered = separator == "|" and re.compile(r"[^\S\n]*\|").match(text, start)
    if bordered:
        position = bordered.end()
    fields: list[str] = []
    starts: list[int] = []
    while True:
        starts.append(position - start)
        field, position = _field(text, position, separator)
        fields.append(field)
        if position >= len(text) or text[position] == "\n":
            break
        position += 1
    if bordered and len(fields) > 1 and not fields[-1]:
        fields.pop()
    return Record(fields, starts, text[start:position], after_blank), position + 1


def _field(text: str, start: int, separator: str) -> tuple[str, int]:
    """The field that begins here, and where the separator or line end behind it stands."""
    begins = start
    while text[begins : begins + 1] in (" ", "\t") and text[begins] != separator:
        begins += 1
    if text[begins : begins + 1] in _CLOSING and (quoted := _quoted(text, begins, separator)):
        return quoted
    end = _ends(separator).field.search(text, start)
    assert end is not None
    return text[start : end.start()].strip(), end.start()


def _quoted(text: str, start: int, separator: str) -> tuple[str, int] | None:
    """The quoted field that begins here: up to the first quote that a separator or line end follows."""
    closing = _CLOSING[text[start]]
    ended = _ends(separator).quoted
    limit = start + MAX_QUOTED
    position, inner = start + 1, 0
    while inner <= MAX_INNER_QUOTES and (quote := text.find(closing, position, limit)) >= 0:
        if text[quote - 1] == "\\" and quote > start + 1:
            position = quote + 1
            continue
        doubled = closing == '"' and text.startswith('"', quote + 1)
        if doubled and inner and ended.match(text, quote + 2):
            quote += 1  # a quote within quotes stands at the end of the field
        elif doubled:
            position = quote + 2
            continue
        behind = ended.match(text, quote + 1)
        if behind is not None:
            content = text[start + 1 : quote]
            if closing == "'" and "\n" in content:
                return None  # an apostrophe
            if closing == '"' and not inner:
                content = content.replace('""', '"')
            return content.replace(f"\\{closing}", closing), behind.end()
        inner += 1
        position = quote + 1
    return None
