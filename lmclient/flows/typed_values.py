"""Values of a context as the types that were asked for."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from lmclient.errors import FlowError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def as_type(key: str, value: Any, type_: Any) -> Any:
    """The value, made a value of the type where that loses nothing: `"5"` is an int, 5 a str.

    Raises `FlowError` naming the key if it is none.
    """
    if isinstance(type_, type) and isinstance(value, type_) and (type_ is bool or type(value) is not bool):
        return value
    if type_ is str and isinstance(value, int | float | Decimal):
        return str(value)
    from pydantic import ValidationError

    try:
        adapter = _adapter(type_)
        if adapter is None:
            return msgspec.convert(value, type_, strict=False)
        return adapter.validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
    except msgspec.ValidationError as error:
        problem = str(error)
    raise FlowError(f"The context's {key!r} is {value!r:.80}, not {_name(type_)}: {problem}.")


@functools.lru_cache(maxsize=256)
def _adapter(type_: Any) -> TypeAdapter[Any] | None:
    """pydantic's reading of a type, None for those that only msgspec knows."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(type_)
    except PydanticUserError:
        return None


def _name(type_: Any) -> str:
    return type_.__name__ if isinstance(type_, type) else str(type_)
