"""Schemas by OpenAI's strict rules."""

from __future__ import annotations

import datetime
import decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import BaseModel, Field

from lmclient.core.completion import Completion
from lmclient.core.schema_strict import STRUCTURE_KEYWORDS
from lmclient.core.structured import is_strict_possible, json_schema, parse_completion, strict_schema

Json = dict[str, Any]


class Node(BaseModel):
    label: str
    children: list[Node] = []
    parent: Node | None = Field(default=None, description="above")


class Leaf(msgspec.Struct):
    size: int = 1


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str | None = None


class Home(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    guest: Cat = Field(description="only visits")


def strict_property(schema: Json, **options: Any) -> Json:
    """What becomes of the schema of a required property."""
    root = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    found: Json = strict_schema(root, **options)["properties"]["a"]
    return found


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "string", "minLength": 2}, {"type": "string", "description": "(minLength: 2)"}),
        (
            {"type": "string", "description": "a link", "format": "uri"},
            {"type": "string", "description": "a link (format: uri)"},
        ),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^a"}),
        ({"type": "string", "pattern": "(?!a)"}, {"type": "string", "description": "(pattern: (?!a))"}),
        ({"type": "integer", "minimum": 1, "default": 2}, {"type": "integer", "minimum": 1}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"], "type": "string"}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None], "type": ["string", "integer", "null"]}),
        ({"const": True}, {"const": True, "type": "boolean"}),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]},
            {"type": "array", "items": {"type": "string"}},
        ),
        (
            {"allOf": [{"type": "object", "properties": {"b": {"type": "null"}}}], "description": "x"},
            {
                "type": "object",
                "properties": {"b": {"type": "null"}},
                "required": ["b"],
                "additionalProperties": False,
                "description": "x",
            },
        ),
    ],
)
def test_keywords_are_kept_moved_or_removed(schema: Json, strict: Json) -> None:
    assert strict_property(schema) == strict


def test_ranges_move_to_the_description_for_providers_that_check_none() -> None:
    strict = strict_property({"type": "integer", "minimum": 1}, keywords=STRUCTURE_KEYWORDS)
    assert strict == {"type": "integer", "description": "(minimum: 1)"}


def test_all_properties_are_required_and_optional_ones_may_be_null() -> None:
    schema = strict_schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "string", "description": "second"},
                "c": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "d": {"type": ["string", "null"]},
                "e": {"const": "tag"},
            },
            "required": ["a"],
        }
    )
    assert schema["required"] == ["a", "b", "c", "d", "e"]
    assert schema["properties"] == {
        "a": {"type": "string"},
        "b": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "second"},
        "c": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "d": {"type": ["string", "null"]},
        "e": {"const": "tag", "type": "string"},
    }


def test_properties_named_like_keywords_stay() -> None:
    schema = {"type": "object", "properties": {"default": {"type": "string"}, "oneOf": {"type": "string"}}}
    assert set(strict_schema(schema)["properties"]) == {"default", "oneOf"}


def test_a_reference_with_a_description_is_resolved() -> None:
    guest = strict_schema(Home)["properties"]["guest"]
    assert "$ref" not in guest
    assert guest["description"] == "only visits"
    assert guest["required"] == ["kind"]


def test_a_choice_by_tag_becomes_a_plain_choice() -> None:
    pet = strict_schema(Home)["properties"]["pet"]
    assert pet["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert not pet.keys() & {"oneOf", "discriminator"}


def test_a_recursive_type_keeps_its_references() -> None:
    schema = strict_schema(Node)
    assert schema["type"] == "object"
    assert schema["$defs"]["Node"]["additionalProperties"] is False
    assert schema["properties"]["parent"]["description"] == "above"


def test_a_recursive_reference_with_a_description_comes_to_an_end() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "x"}}}
    assert strict_schema({"$ref": "#/$defs/N", "$defs": {"N": node}})["type"] == "object"


def test_a_reference_at_the_root_is_resolved() -> None:
    assert strict_schema(Leaf) == {
        "title": "Leaf",
        "type": "object",
        "properties": {"size": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["size"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("type_", [list[Leaf], Cat | Dog, int, tuple[int, str], Literal["a"], Leaf | None])
def test_what_is_no_object_is_wrapped_into_one(type_: Any) -> None:
    schema = strict_schema(type_)
    assert (schema["type"], schema["required"]) == ("object", ["value"])
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "schema",
    [
        dict,
        dict[str, int],
        list[dict[str, int]],
        Any,
        list,
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "patternProperties": {"^a": {"type": "string"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "additionalProperties": {}}}},
    ],
    ids=str,
)
def test_open_maps_and_values_of_any_type_cannot_be_strict(schema: Any) -> None:
    assert not is_strict_possible(schema)


@pytest.mark.parametrize(
    "schema",
    [
        Node,
        Leaf,
        Home,
        list[Leaf],
        tuple[int, str],
        decimal.Decimal,
        datetime.datetime,
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {}, "additionalProperties": True},
    ],
    ids=str,
)
def test_closed_types_can_be_strict(schema: Any) -> None:
    assert is_strict_possible(schema)


def test_a_schema_is_not_changed_by_its_conversion() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    strict_schema(schema)
    assert schema == {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}


@pytest.mark.parametrize(
    "response_format",
    [
        {"type": "integer"},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "integer"}}},
        {"type": "json_schema", "name": "x", "schema": {"type": "integer"}},
    ],
    ids=["schema", "chat", "responses"],
)
def test_a_schema_may_be_given_in_three_forms(response_format: Json) -> None:
    assert json_schema(response_format) == {"type": "integer"}


def test_a_type_that_json_cannot_carry_is_refused() -> None:
    with pytest.raises(TypeError, match="Opaque is no type that JSON can carry"):
        json_schema(type("Opaque", (), {}))


def test_an_answer_by_strict_rules_is_read_back() -> None:
    text = '{"label": "a", "children": [{"label": "b", "children": null, "parent": null}], "parent": null}'
    assert parse_completion(Completion(text=text), Node) == Node(label="a", children=[Node(label="b")])
