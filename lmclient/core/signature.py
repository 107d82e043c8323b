"""Functions as tools: what a model is told about one, and a model's arguments for it."""

from __future__ import annotations

import functools
import inspect
import json
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from lmclient.core.docstring import read_docstring
from lmclient.core.schema import Json, Misfit, type_schema
from lmclient.core.schema_strict import read_strict
from lmclient.errors import ProtocolError

_UNTYPED: Any = Any


class _Parameter(msgspec.Struct, frozen=True):
    name: str
    type: Any
    default: Any

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def describe(function: Callable[..., object]) -> tuple[str, str, Json]:
    """Name, description and the JSON schema of the parameters of a function.

    The description is the docstring up to its sections. A parameter without a type takes any JSON
    value. What `functools.partial` has fixed is not shown.

    Raises `TypeError` for a parameter that JSON cannot carry: `*args`, `**kwargs`, positional-only
    ones, or those of a type that has no JSON schema.
    """
    name = _name(function)
    description, documented = read_docstring(_docstring(function))
    properties: Json = {}
    definitions: Json = {}
    parameters = _parameters(function)
    for parameter in parameters:
        try:
            schema = dict(type_schema(parameter.type))
        except TypeError as error:
            raise TypeError(f"Tool {name!r}: parameter {parameter.name!r}: {error}") from error
        for title, definition in schema.pop("$defs", {}).items():
            if definitions.setdefault(title, definition) != definition:
                raise TypeError(f"Tool {name!r}: its parameters have two different types named {title!r}.")
        if said := _annotation(parameter.type) or documented.get(parameter.name):
            schema["description"] = said
        if not parameter.required:
            _add_default(schema, parameter.default)
        properties[parameter.name] = schema
    schema = {"type": "object", "properties": properties}
    schema["required"] = [parameter.name for parameter in parameters if parameter.required]
    schema["additionalProperties"] = False
    return name, description, {**schema, "$defs": definitions} if definitions else schema


def bind_arguments(function: Callable[..., object], arguments: Json) -> Json:
    """A model's JSON arguments as keyword arguments for the function, as values of its types.

    What the model left out is left out, and so is a null for a parameter that has a default and
    takes no null.

    Raises `ProtocolError`, whose message may be sent back to the model, if they do not fit.
    """
    parameters = {parameter.name: parameter for parameter in _parameters(function)}
    problems = [
        f"{name}: there is no such argument (expected {', '.join(parameters) or 'none'})"
        for name in arguments
        if name not in parameters
    ]
    bound: Json = {}
    for name, parameter in parameters.items():
        if name not in arguments:
            if parameter.required:
                problems.append(f"{name}: the argument is missing")
            continue
        try:
            bound[name] = read_strict(parameter.type, json.dumps(arguments[name]))
        except Misfit as misfit:
            if arguments[name] is not None or parameter.required:
                problems.append(misfit.below(name))
    if problems:
        raise ProtocolError(f"The arguments do not fit {_name(function)}: {'; '.join(problems)}.")
    return bound


def _parameters(function: Callable[..., object]) -> list[_Parameter]:
    name = _name(function)
    hints = _hints(function)
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls") or parameter.name in fixed:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"Tool {name!r}: a model cannot fill {parameter}; name each parameter.")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"Tool {name!r}: parameter {parameter.name!r} cannot be given by name.")
        found.append(_Parameter(parameter.name, hints.get(parameter.name, _UNTYPED), parameter.default))
    return found


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    target = _implementation(function)
    if inspect.isclass(target):
        target = target.__init__
    elif not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"Tool {_name(function)!r}: a type hint cannot be resolved ({error}); "
            "define or import the type at the top of the module."
        ) from error


def _implementation(function: Callable[..., object]) -> Callable[..., object]:
    """The function below partial applications and decorators."""
    while isinstance(function, functools.partial):
        function = function.func
    target: Callable[..., object] = inspect.unwrap(function)
    return target


def _name(function: Callable[..., object]) -> str:
    target = _implementation(function)
    name = target.__name__ if inspect.isroutine(target) or inspect.isclass(target) else type(target).__name__
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:64]


def _docstring(function: Callable[..., object]) -> str:
    target = _implementation(function)
    if not inspect.isroutine(target) and not inspect.isclass(target):
        return inspect.getdoc(type(target).__call__) or inspect.getdoc(target) or ""
    return inspect.getdoc(target) or ""


def _annotation(type_: Any) -> str | None:
    """The description in `Annotated[..., "description"]` or a pydantic `Field` there."""
    if typing.get_origin(type_) is not Annotated:
        return None
    from pydantic.fields import FieldInfo

    for said in type_.__metadata__:
        if isinstance(said, str):
            return said
        if isinstance(said, FieldInfo) and said.description:
            return said.description
    return None


def _add_default(schema: Json, default: Any) -> None:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        schema["default"] = to_jsonable_python(default)
    except PydanticSerializationError:  # a default that JSON cannot carry is not shown
        schema.pop("default", None)
