"""What a docstring says about a function and its parameters, in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_FIELD = re.compile(r":[a-z]+(?:\s[^:]*)?:")
_SECTION = re.compile(
    r"(args|arguments|parameters|params|keyword args|keyword arguments|other parameters|returns?|yields?|"
    r"raises|examples?|notes?|attributes|warnings?|warns|see also|references|todo|receives):?\s*",
    re.IGNORECASE,
)
_PARAMETERS = ("args", "arguments", "param", "keyword", "other parameters")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description of a function, and those of its parameters by name."""
    lines = inspect.cleandoc(text).splitlines()
    end = next((number for number in range(len(lines)) if _starts_section(lines, number)), len(lines))
    parameters: dict[str, str] = {}
    for number in range(end, len(lines)):
        if match := _SPHINX.match(lines[number]):
            _add(parameters, match[1], [match[2], *_indented(lines, number + 1)])
        elif _starts_section(lines, number) and lines[number].lower().startswith(_PARAMETERS):
            if _is_underlined(lines, number):
                _read_numpy(lines, number + 2, parameters)
            else:
                _read_google(_indented(lines, number + 1), parameters)
    return "\n".join(lines[:end]).strip(), parameters


def _starts_section(lines: Sequence[str], number: int) -> bool:
    line = lines[number]
    if _FIELD.match(line) or _is_underlined(lines, number):
        return True
    return bool(_SECTION.fullmatch(line)) and line.rstrip().endswith(":")


def _is_underlined(lines: Sequence[str], number: int) -> bool:
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return bool(_SECTION.fullmatch(lines[number])) and len(below) >= 3 and not below.strip("-")


def _indented(lines: Sequence[str], start: int) -> list[str]:
    """The lines from `start` on that are indented or blank."""
    end = start
    while end < len(lines) and (not lines[end] or lines[end][0].isspace()):
        end += 1
    return list(lines[start:end])


def _read_google(lines: Sequence[str], parameters: dict[str, str]) -> None:
    block = inspect.cleandoc("\n".join(["", *lines])).splitlines()
    for number, line in enumerate(block):
        if match := _GOOGLE_ENTRY.match(line):
            _add(parameters, match[1], [match[2], *_indented(block, number + 1)])


def _read_numpy(lines: Sequence[str], start: int, parameters: dict[str, str]) -> None:
    for number in range(start, len(lines)):
        if _starts_section(lines, number):
            break
        if match := _NUMPY_ENTRY.fullmatch(lines[number]):
            for name in match[1].split(","):
                _add(parameters, name.strip(" *"), _indented(lines, number + 1))


def _add(parameters: dict[str, str], name: str, lines: Sequence[str]) -> None:
    if text := " ".join(" ".join(lines).split()):
        parameters.setdefault(name, text)
