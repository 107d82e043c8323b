"""`${NAME}` and `${NAME:default}` in the values of a profile; `$${` stands for a literal `${`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lmclient.errors import ConfigurationError

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}:]*)(?::([^}]*))?(\})?")
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
        """The variable's value, None if it is not set or empty.

        Raises `ConfigurationError` if .env cannot be read.
        """
        return os.environ.get(name) or self._from_file(name) or None

    def _from_file(self, name: str) -> str | None:
        if self._file is None:
            from dotenv import dotenv_values

            path = Path(".env")
            try:
                self._file = dict(dotenv_values(path, encoding="utf-8")) if path.is_file() else {}
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigurationError(f".env of the working directory cannot be read: {error}.") from error
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
        literal, name, default, end = match.groups()
        if literal is not None:
            return str(literal)
        # Without its closing brace a reference is a mistake, not a text to send.
        found = (lookup(name) or default) if end else None
        if found is None:
            unresolved.append(Unresolved(key, name))
        return found or ""

    return _REFERENCE.sub(replacement, value)
