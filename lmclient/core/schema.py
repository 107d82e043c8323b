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
    from pydantic import TypeAdapter, ValidationError

Json = dict[str, Any]
_MAX_PROBLEMS = 5


class Misfit(ValueError):
    """A JSON text is not a value of a type; the message is one line of paths and expectations."""


def type_schema(type_: Any) -> Json:
    """The JSON schema of a type. Raises `TypeError` if JSON cannot carry it."""
    from pydantic.errors import PydanticUserError

    adapter = _adapter(type_)
    try:
        if adapter is None:
            return msgspec.json.schema(type_)
        return adapter.json_schema()
    except (TypeError, PydanticUserError) as error:
        raise TypeError(f"{type_name(type_)} is no type that JSON can carry: {_one_line(error)}") from error


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
        raise Misfit(_pydantic_problems(error)) from error


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
        raise TypeError(f"{type_name(type_)} is no type that JSON can carry: {_one_line(error)}") from error


_cached_adapter = functools.lru_cache(maxsize=256)(_new_adapter)


def _msgspec_problem(error: msgspec.DecodeError) -> str:
    expectation, _, path = str(error).partition(" - at `$")
    path = path.rstrip("`").removeprefix(".")
    return f"{path}: {expectation}" if path else expectation


def _pydantic_problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False)
    problems = []
    for one in found[:_MAX_PROBLEMS]:
        path = ".".join(str(step) for step in one["loc"])
        given = "" if one["type"] in ("missing", "json_invalid") else f" (got {one['input']!r:.60})"
        problems.append(f"{path}: {one['msg']}{given}" if path else f"{one['msg']}{given}")
    if len(found) > _MAX_PROBLEMS:
        problems.append(f"and {len(found) - _MAX_PROBLEMS} more")
    return _one_line("; ".join(problems))


def _one_line(value: object) -> str:
    return " ".join(str(value).split())
