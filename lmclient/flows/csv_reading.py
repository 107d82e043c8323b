"""Reads the table in what a model says: CSV of any separator, in prose or a code fence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lmclient.flows.csv_records import Record, records
from lmclient.flows.handlers_failure import Unreadable

SEPARATORS = (",", ";", "\t", "|")
MAX_HEADER = 80
"""Characters of the longest column name."""

MAX_TRIED = 20
"""Lines that are tried as the header."""

_FENCED = re.compile(r"(?:```+|~~~+)[^\S\n]*([\w+.-]*)[^\S\n]*\n(.*?)(?:\n[^\S\n]*(?:```|~~~)|\Z)", re.DOTALL)
_FENCE_LINE = re.compile(r"^(?:```|~~~).*$", re.MULTILINE)
_ENDS_A_SENTENCE = re.compile(r"[.:!?…](?:[*_]*)\Z")
_RULE = re.compile(r"\s*:?-{2,}:?\s*\Z")
_NAME = re.compile(r"[\w.#%/()-]+\Z")


class Table(NamedTuple):
    """Column names, all different, and rows of as many fields."""

    header: list[str]
    rows: list[list[str]]


def read_table(text: str, columns: Sequence[str] = ()) -> Table:
    """The table in the text. With `columns`, the names that are expected, it may lack its header.

    Raises `Unreadable` if there is none.
    """
    text = _without_thoughts(text).strip().lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    fenced = [_FENCE_LINE.sub("", match[2]) for match in _FENCED.finditer(text)]
    for part in (*fenced, _FENCE_LINE.sub("", text)):
        table = _table(part, columns, fenced=part in fenced)
        if table is not None:
            return table
    expected = f" with the columns {', '.join(columns)}" if columns else ""
    raise Unreadable(f"there is no CSV table{expected} in it")


class _Candidate(NamedTuple):
    score: tuple[float, ...]
    header: list[str]
    records: list[Record]


def _table(text: str, columns: Sequence[str], *, fenced: bool) -> Table | None:
    wanted = [normalized(column) for column in columns]
    found = [one for separator in SEPARATORS if (one := _candidate(text, separator, wanted, fenced))]
    if found:
        best = max(found, key=lambda one: one.score)
        return Table(_different(best.header), _rows(best.records, len(best.header), fenced))
    return _headless(text, columns, fenced) or _single_column(text, wanted, fenced)


def _candidate(text: str, separator: str, wanted: list[str], fenced: bool) -> _Candidate | None:
    """The best header for this separator, and the records below it."""
    if separator not in text:
        return None
    all_records = records(text, separator)
    best: _Candidate | None = None
    for number, record in enumerate(all_records[:MAX_TRIED]):
        header = _header(record, fenced)
        if header is None:
            continue
        known = len({normalized(name) for name in header} & set(wanted))
        if wanted and not known:
            continue
        rows = all_records[number + 1 :]
        fitting = sum(_fits(row, header, fenced) for row in rows)
        if not fitting and not (wanted and known == len(wanted)):
            continue
        many = sum(len(row.fields) > 1 for row in rows)
        score = (known, fitting >= many / 2, len(header), fitting, -number)
        if best is None or score > best.score:
            best = _Candidate(score, header, rows)
    return best


def _fits(row: Record, header: list[str], fenced: bool) -> bool:
    """Whether this is a row below the header; with more fields only if nothing speaks for a sentence."""
    width, fields = len(header), row.fields
    if len(fields) == width or (len(fields) > width and not any(fields[width:])):
        return True
    plain = fenced or not _ENDS_A_SENTENCE.search(row.text.rstrip())
    return plain and len(fields) > width and all(len(name.split()) <= 3 for name in header)


def _header(first: Record, fenced: bool) -> list[str] | None:
    """The record as column names, None if it cannot be a header."""
    names = [name.strip().strip("*_`").strip() for name in first.fields]
    while len(names) > 1 and not names[-1]:
        names.pop()
    if len(names) < 2 or any(len(name) > MAX_HEADER or "\n" in name for name in names):
        return None
    if all(_RULE.match(name) for name in names):
        return None
    if not fenced and _ENDS_A_SENTENCE.search(first.text.rstrip()):
        return None
    return names


def _rows(below: list[Record], width: int, fenced: bool) -> list[list[str]]:
    """The records that are rows: prose around the table is left out, fields too few are filled up.

    A line of a single field is prose, unless it stands in a fence.
    """
    rows: list[list[str]] = []
    for record in below:
        fields = record.fields if any(record.fields[width:]) else record.fields[:width]
        if (len(fields) < 2 and not fenced) or all(_RULE.match(field) for field in fields):
            continue
        if rows and record.after_blank and _ENDS_A_SENTENCE.search(record.text.rstrip()):
            break
        if len(fields) > width:  # separators that should have been quoted, most likely in the last column
            fields = [*fields[: width - 1], record.rest(width - 1)]
        rows.append(fields + [""] * (width - len(fields)))
    return rows


def _headless(text: str, columns: Sequence[str], fenced: bool) -> Table | None:
    """A table without its header: every record has as many fields as there are columns."""
    if len(columns) < 2:
        return None
    for separator in SEPARATORS:
        fitting = [one for one in records(text, separator) if len(one.fields) == len(columns)]
        rows = [one.fields for one in fitting if fenced or not _ENDS_A_SENTENCE.search(one.text.rstrip())]
        if rows:
            return Table(list(columns), [row for row in rows if not all(map(_RULE.match, row))])
    return None


def _single_column(text: str, wanted: list[str], fenced: bool) -> Table | None:
    """A table of one column: a name, and a value per line."""
    below = [record for record in records(text, "\n") if record.fields != [""]]
    for number, record in enumerate(below):
        name = record.fields[0].strip().strip("*_`")
        if wanted and normalized(name) not in wanted:
            continue
        if not (_NAME.match(name) and (wanted or fenced or number == 0)) or len(below) == number + 1:
            return None
        return Table([name], [one.fields for one in below[number + 1 :]])
    return None


def normalized(name: str) -> str:
    """A column's name without what models vary: case, spaces, underscores, punctuation."""
    return re.sub(r"[\W_]+", "", name).casefold()


def _different(names: list[str]) -> list[str]:
    """The names with a number behind those that stand there twice, or for those that are empty."""
    different: dict[str, None] = {}
    for number, name in enumerate(names, start=1):
        name = name or f"column_{number}"
        while name in different:
            name = f"{name}_{number}"
        different[name] = None
    return list(different)


def _without_thoughts(text: str) -> str:
    _, _, after = text.rpartition("</think>")
    return after if after.strip() else text
