"""pydantic's validation errors as plain sentences: which key, what stands there, what was expected.

Values are named only by their type: a wrong value may be a misplaced key.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

_EXPECTED = {
    "missing": "a value",
    "string_type": "text",
    "string_too_short": "a text that is not empty",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "decimal_type": "a number, best written as text",
    "decimal_parsing": "a number, best written as text",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "list_type": "a list",
    "tuple_type": "a list",
    "path_type": "a path",
}


class WrongValue(NamedTuple):
    """One wrong value: its dotted `key`, what was `expected`, and a `message` naming both."""

    key: str
    expected: str
    message: str


def wrong_values(error: ValidationError, model: type[BaseModel]) -> list[WrongValue]:
    """Every wrong value that `error` of `model` reports, in its order, each key once."""
    found: dict[str, WrongValue] = {}
    for detail in error.errors(include_url=False, include_context=True):
        key = _key(detail["loc"], detail["type"])
        found.setdefault(key, _wrong_value(key, detail, model))
    return list(found.values())


def _key(location: Sequence[int | str], kind: str) -> str:
    # The members of a union ("str", "list[str]") stand in the location too; they are no keys.
    names = [str(part) for part in location if part not in ("str", "list[str]", "[key]")]
    return ".".join(names)


def _wrong_value(key: str, detail: Any, model: type[BaseModel]) -> WrongValue:
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind == "extra_forbidden":
        expected = known_names(key.rpartition(".")[2], _names_at(model, detail["loc"][:-1]))
        return WrongValue(key, expected, f"the key {key!r} is not known; expected {expected}")
    if kind == "missing":
        return WrongValue(key, "a value", f"the key {key!r} is missing")
    expected = _expected(kind, context, detail["msg"])
    return WrongValue(key, expected, f"{key}: expected {expected}, found {_shown(detail['input'], kind)}")


def _expected(kind: str, context: dict[str, Any], message: str) -> str:
    if kind == "literal_error":
        return f"one of {context['expected']}"
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])
    for bound, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        if bound in context:
            return f"a number of {words} {context[bound]}"
    return _EXPECTED.get(kind, message)


def _shown(value: object, kind: str) -> str:
    """A number as it is, unless it stands for a text; anything else by its type: it may be a secret."""
    if isinstance(value, bool | int | float):
        return "a number" if kind == "string_type" else repr(value)
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return "other text" if kind in ("value_error", "literal_error") else "text"
    return {"dict": "a table", "list": "a list"}.get(type(value).__name__, f"a {type(value).__name__}")


def known_names(wrong: str, names: Iterable[str]) -> str:
    """What would be right instead of the `wrong` name, the most similar first."""
    ordered = list(names)
    close = difflib.get_close_matches(wrong, ordered, n=3, cutoff=0.6)
    rest = [name for name in ordered if name not in close]
    return "one of " + ", ".join([*close, *rest])


def _names_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part)
        inner = None if field is None else _model_in(field.annotation)
        if inner is None:
            break
        current = inner
    return list(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if (found := _model_in(argument)) is not None:
            return found
    return None
