"""Types as JSON schemas, and JSON texts as values of types.

pydantic reads every type but those that only msgspec knows: its Structs, and `typing.TypedDict`
before Python 3.12.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

Json = dict[str, Any]
_MAX_PROBLEMS = 5


class Misfit(ValueError):
    """A JSON text is not a value of a type: `problems` are pairs of a path and what is wrong there."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return self.below("")

    def below(self, parent: str) -> str:
        """The problems in one line, for a value that stands at the path `parent`."""
        lines = []
        for path, problem in self.problems[:_MAX_PROBLEMS]:
            place = f"{parent}.{path}" if parent and path else parent or path
            lines.append(f"{place}: {problem}" if place else problem)
        if len(self.problems) > _MAX_PROBLEMS:
            lines.append(f"and {len(self.problems) - _MAX_PROBLEMS} more")
        return _one_line("; ".join(lines))


def type_schema(type_: Any) -> Json:
    """The JSON schema of a type. Raises `TypeError` if JSON cannot carry it."""
    from pydantic.errors import PydanticUserError

    adapter = _adapter(type_)
    try:
        if adapter is None:
            return msgspec.json.schema(type_)
        return adapter.json_schema()
    except (TypeError, PydanticUserError) as error:
        raise _no_schema(type_, error) from error


def validate_json(type_: Any, text: str) -> Any:
    """The JSON text as a value of a type.

    Raises `Misfit` if it is none, and `TypeError` if JSON cannot carry the type.
    """
    from pydantic import ValidationError

    adapter = _adapter(type_)
    try:
        if adapter is None:
            return msgspec.json.decode(text, type=type_)
        return adapter.validate_json(text)
    except msgspec.DecodeError as error:
        raise Misfit(_msgspec_problem(error)) from error
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        raise Misfit(*map(_pydantic_problem, found)) from error


def type_name(type_: Any) -> str:
    """What a type is called in messages."""
    return type_.__name__ if isinstance(type_, type) and "[" not in repr(type_) else _unqualified(repr(type_))


def _unqualified(name: str) -> str:
    return re.sub(r"\b(?:\w+\.)+(?:<locals>\.)?", "", name)


def _adapter(type_: Any) -> TypeAdapter[Any] | None:
    """pydantic's reading of a type, None for a type that only msgspec knows."""
    try:
        return _cached_adapter(type_)
    except TypeError:  # not hashable: Annotated with a pydantic Field
        return _new_adapter(type_)


def _new_adapter(type_: Any) -> TypeAdapter[Any] | None:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    try:
        return TypeAdapter(type_)
    except PydanticSchemaGenerationError:
        return None
    except PydanticUserError as error:
        if error.code == "typed-dict-version":
            return None
        raise _no_schema(type_, error) from error


def _no_schema(type_: Any, error: Exception) -> TypeError:
    why = _one_line(error).partition(" For further information")[0]
    return TypeError(f"{type_name(type_)} is no type that JSON can carry: {why}")


_cached_adapter = functools.lru_cache(maxsize=256)(_new_adapter)


def _msgspec_problem(error: msgspec.DecodeError) -> tuple[str, str]:
    expectation, _, path = str(error).partition(" - at `$")
    return path.rstrip("`").removeprefix("."), expectation


def _pydantic_problem(error: ErrorDetails) -> tuple[str, str]:
    path = ".".join(str(step) for step in error["loc"])
    given = "" if error["type"] in ("missing", "json_invalid") else f" (got {error['input']!r:.60})"
    return path, f"{error['msg']}{given}"


def _one_line(value: object) -> str:
    return " ".join(str(value).split())
