"""Rows of texts as values of a type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from lmclient.core.schema import Misfit, validate_json

_NUMBER = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_TRUTH = {"yes": "true", "no": "false", "y": "true", "n": "false"}


def row_of(type_: Any, cells: Mapping[str, str]) -> Any:
    """A value of the type from texts by field. Raises `Misfit` if they are none."""
    problem: Misfit | None = None
    for attempt in _readings(cells):
        try:
            return _convert(type_, attempt)
        except Misfit as misfit:
            problem = problem or misfit
    assert problem is not None
    raise problem


def _readings(cells: Mapping[str, str]) -> list[dict[str, Any]]:
    """The cells as they are, then with plain numbers and truth values, then without empty ones."""
    plain = {name: _plain(text) for name, text in cells.items()}
    return [
        dict(cells),
        plain,
        {name: value for name, value in plain.items() if value != ""},
        {name: value if value != "" else None for name, value in plain.items()},
    ]


def _plain(text: str) -> str:
    if _NUMBER.match(text):
        return text.replace(",", "")
    return _TRUTH.get(text.casefold(), text)


def _convert(type_: Any, cells: dict[str, Any]) -> Any:
    try:
        return validate_json(type_, msgspec.json.encode(cells).decode())
    except Misfit:
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            try:  # msgspec reads numbers in texts only if asked to
                return msgspec.convert(cells, type_, strict=False)
            except msgspec.ValidationError:
                pass
        raise
