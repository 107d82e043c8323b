"""`${NAME}` and `${NAME:default}` in the values of a profile; `$${` stands for a literal `${`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}:]*)(?::([^}]*))?\}")
Lookup = Callable[[str], str | None]


class Unresolved(NamedTuple):
    """A variable without a value, and the dotted key that needs it."""

    key: str
    variable: str


class Variables:
    """The process's environment, and behind it the .env file of the working directory.

    The file is read once, on the first variable that the environment lacks; `os.environ` is never
    changed. A variable that is set but empty counts as not set.
    """

    def __init__(self) -> None:
        self._file: dict[str, str | None] | None = None

    def get(self, name: str) -> str | None:
        """The variable's value, None if it is not set or empty."""
        return os.environ.get(name) or self._from_file(name) or None

    def _from_file(self, name: str) -> str | None:
        if self._file is None:
            from dotenv import dotenv_values

            path = Path(".env")
            self._file = dict(dotenv_values(path, encoding="utf-8")) if path.is_file() else {}
        return self._file.get(name)


def expand(values: dict[str, Any], lookup: Lookup) -> tuple[dict[str, Any], list[Unresolved]]:
    """The values with every reference replaced, and the references that `lookup` cannot resolve.

    A value with an unresolved reference is left out.
    """
    unresolved: list[Unresolved] = []
    return _expand_table(values, "", lookup, unresolved), unresolved


def _expand_table(
    values: dict[str, Any], prefix: str, lookup: Lookup, unresolved: list[Unresolved]
) -> dict[str, Any]:
    expanded = {}
    for key, value in values.items():
        before = len(unresolved)
        result = _expand(value, prefix + key, lookup, unresolved)
        if isinstance(value, dict | list) or len(unresolved) == before:
            expanded[key] = result
    return expanded


def _expand(value: Any, key: str, lookup: Lookup, unresolved: list[Unresolved]) -> Any:
    if isinstance(value, dict):
        return _expand_table(value, f"{key}.", lookup, unresolved)
    if isinstance(value, list):
        return [_expand(item, f"{key}.{index}", lookup, unresolved) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replacement(match: re.Match[str]) -> str:
        literal, name, default = match.groups()
        if literal is not None:
            return str(literal)
        found = lookup(name)
        if found is None:
            if default is None:
                unresolved.append(Unresolved(key, name))
            return default or ""
        return found

    return _REFERENCE.sub(replacement, value)
