"""Functions described for a model, and its arguments as values of the function's types."""

from __future__ import annotations

import datetime
import enum
import functools
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field

from lmclient.core.signature import bind_arguments, describe
from lmclient.errors import ProtocolError


class Color(enum.Enum):
    RED = "r"
    GREEN = "g"


class Pet(BaseModel):
    name: str
    age: int = 3


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclass
class Size:
    width: int


class Address(TypedDict):
    street: str


def properties(function: Callable[..., object]) -> dict[str, Any]:
    return describe(function)[2]["properties"]


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Color, {"type": "string", "enum": ["r", "g"], "title": "Color"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (
            Annotated[int, Field(description="how many", ge=1)],
            {"type": "integer", "description": "how many", "minimum": 1},
        ),
        (Any, {}),
    ],
    ids=str,
)
def test_a_type_becomes_its_schema(type_: Any, schema: dict[str, Any]) -> None:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = type_
    assert properties(function) == {"value": schema}


@pytest.mark.parametrize("type_", [Pet, Size, Point, Address])
def test_a_class_becomes_an_object_or_a_reference_to_one(type_: Any) -> None:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = type_
    parameters = describe(function)[2]
    value = parameters["properties"]["value"]
    name = value.get("$ref", "").rpartition("/")[2]
    assert (parameters["$defs"][name] if name else value)["type"] == "object"


def test_types_of_several_parameters_share_their_definitions() -> None:
    def function(first: list[Pet], second: list[Pet], third: list[Point]) -> None: ...

    parameters = describe(function)[2]
    assert sorted(parameters["$defs"]) == ["Pet", "Point"]
    assert parameters["properties"]["second"]["items"] == {"$ref": "#/$defs/Pet"}


def test_defaults_are_shown_and_not_required() -> None:
    def function(a: int, b: Color = Color.GREEN, c: object = object()) -> None: ...

    parameters = describe(function)[2]
    assert parameters["required"] == ["a"]
    assert parameters["properties"]["b"]["default"] == "g"
    assert "default" not in parameters["properties"]["c"]


def google(a: int, b: int) -> None:
    """Adds.

    Carefully.

    Args:
        a (int): The first: a
            number.
        b: The second.

    Returns:
        c: nothing.
    """


def numpy(a: int, b: int) -> None:
    """Adds.

    Carefully.

    Parameters
    ----------
    a : int
        The first: a
        number.
    b : int, optional
        The second.

    Returns
    -------
    c : int
        Nothing.
    """


def sphinx(a: int, b: int) -> None:
    """Adds.

    Carefully.

    :param a: The first: a
        number.
    :param int b: The second.
    :returns: Nothing.
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_docstrings_of_three_styles_describe_function_and_parameters(function: Any) -> None:
    _, description, parameters = describe(function)
    assert description == "Adds.\n\nCarefully."
    assert parameters["properties"] == {
        "a": {"type": "integer", "description": "The first: a number."},
        "b": {"type": "integer", "description": "The second."},
    }


def test_an_annotation_describes_better_than_the_docstring() -> None:
    def function(a: Annotated[int, "from the type"]) -> None:
        """Does.

        Args:
            a: from the docstring
        """

    assert properties(function)["a"]["description"] == "from the type"


class Shop:
    """A shop."""

    def sell(self, item: str) -> None:
        """Sells."""

    def __call__(self, item: str) -> None:
        """Opens."""


async def fetch(item: str) -> None:
    """Fetches."""


def send(secret: str, item: str, *, token: str) -> None:
    """Sends."""


@functools.wraps(send)
def wrapped(*args: Any, **kwargs: Any) -> None:
    send(*args, **kwargs)


@pytest.mark.parametrize(
    ("function", "name", "description", "names"),
    [
        (Shop().sell, "sell", "Sells.", ["item"]),
        (Shop.sell, "sell", "Sells.", ["item"]),
        (Shop(), "Shop", "Opens.", ["item"]),
        (fetch, "fetch", "Fetches.", ["item"]),
        (functools.partial(send, "s", token="t"), "send", "Sends.", ["item"]),
        (wrapped, "send", "Sends.", ["secret", "item", "token"]),
        (lambda item: item, "_lambda_", "", ["item"]),
    ],
)
def test_all_kinds_of_callables_are_described(
    function: Any, name: str, description: str, names: list[str]
) -> None:
    assert describe(function)[:2] == (name, description)
    assert list(properties(function)) == names


def test_parameters_that_a_model_cannot_fill_are_refused() -> None:
    def arguments(*values: int) -> None: ...
    def keywords(**values: int) -> None: ...
    def positional(value: int, /) -> None: ...
    def live(value: socket.socket) -> None: ...
    def callback(value: Callable[[], None]) -> None: ...

    for function in (arguments, keywords, positional, live, callback):
        with pytest.raises(TypeError, match=f"'{function.__name__}'.*value"):
            describe(function)


def test_a_type_hint_that_cannot_be_resolved_is_refused() -> None:
    def function(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="'Missing' is not defined"):
        describe(function)


def order(  # one parameter of each kind
    item: str,
    color: Color = Color.RED,
    count: int = 1,
    when: datetime.date | None = None,
    pet: Pet | None = None,
    points: list[Point] = [],  # noqa: B006
    size: Size | None = None,
) -> None:
    """Orders."""


def test_arguments_become_values_of_the_functions_types() -> None:
    arguments = {
        "item": "x",
        "color": "g",
        "count": "2",
        "when": "2030-01-02",
        "pet": {"name": "Tom"},
        "points": [{"x": 1}],
        "size": {"width": 2},
    }
    assert bind_arguments(order, arguments) == {
        "item": "x",
        "color": Color.GREEN,
        "count": 2,
        "when": datetime.date(2030, 1, 2),
        "pet": Pet(name="Tom"),
        "points": [Point(1)],
        "size": Size(2),
    }


def test_what_the_model_left_out_is_left_out() -> None:
    assert bind_arguments(order, {"item": "x"}) == {"item": "x"}


def test_a_null_for_what_has_a_default_is_left_out_at_any_depth() -> None:
    bound = bind_arguments(order, {"item": "x", "count": None, "pet": {"name": "Tom", "age": None}})
    assert bound == {"item": "x", "pet": Pet(name="Tom")}


def test_a_null_that_the_type_takes_is_kept() -> None:
    assert bind_arguments(order, {"item": "x", "when": None}) == {"item": "x", "when": None}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "item: the argument is missing"),
        ({"item": None}, "item: Input should be a valid string"),
        ({"item": "x", "number": 1}, "number: there is no such argument .expected item, color"),
        ({"item": "x", "count": "many"}, "count: Input should be a valid integer.*'many'"),
        ({"item": "x", "pet": {"name": 5}}, r"pet\.name: Input should be a valid string.*5"),
        (
            {"item": "x", "points": [{"x": "a"}]},
            r"points\.0\.x: Expected `int`|points\.\[0\]\.x: Expected `int`",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_named_with_path_and_expectation(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ProtocolError, match=f"do not fit order: .*(?:{said})") as raised:
        bind_arguments(order, arguments)
    assert "\n" not in str(raised.value)


def test_what_a_partial_application_has_fixed_cannot_be_given() -> None:
    with pytest.raises(ProtocolError, match="token: there is no such argument"):
        bind_arguments(functools.partial(send, "s", token="t"), {"item": "x", "token": "mine"})
