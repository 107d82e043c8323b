"""Reading structured output, and asking for it."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.conversation import Conversation, TextPart, Turn
from lmclient.core.structured import (
    json_schema_format,
    parse_completion,
    schema_instruction,
    schema_name,
    validation_message,
    with_instruction,
)
from lmclient.core.tools import ToolCall
from lmclient.core.usage import Usage
from lmclient.errors import ProtocolError


class Person(BaseModel):
    name: str
    age: int = 3
    born: datetime.date | None = None


class Cat(msgspec.Struct, tag="cat"):
    lives: int = 9


class Dog(msgspec.Struct, tag="dog"):
    name: str


@dataclass
class Basket:
    fruits: list[str]
    prices: dict[str, float] = field(default_factory=dict)


class Address(TypedDict):
    street: str
    number: NotRequired[int]


class Boxed(BaseModel):
    value: int


ANN = Person(name="Ann", age=5)


def parsed(text: str, model: Any = Person, **fields: Any) -> Any:
    return parse_completion(Completion(text=text, finish_reason=FinishReason.STOP, **fields), model)


def refused(text: str, model: Any = Person, **fields: Any) -> ProtocolError:
    completion = Completion(text=text, **fields)
    with pytest.raises(ProtocolError) as raised:
        parse_completion(completion, model)
    assert "\n" not in str(raised.value)
    assert raised.value.partial is completion
    return raised.value


@pytest.mark.parametrize(
    ("text", "model", "value"),
    [
        ('{"name": "Ann", "age": 5}', Person, ANN),
        ('{"type": "cat", "lives": 7}', Cat, Cat(7)),
        ('{"fruits": ["fig"], "prices": {"fig": 1}}', Basket, Basket(["fig"], {"fig": 1.0})),
        ('{"street": "Elm"}', Address, {"street": "Elm"}),
        ('[{"name": "Ann", "age": 5}]', list[Person], [ANN]),
        ('{"type": "dog", "name": "Rex"}', Cat | Dog, Dog("Rex")),
        ("42", int, 42),
        ('"yes"', Literal["yes", "no"], "yes"),
        ('{"a": 1}', dict[str, int], {"a": 1}),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
    ],
    ids=["pydantic", "Struct", "dataclass", "TypedDict", "list", "union", "int", "Literal", "dict", "schema"],
)
def test_json_becomes_a_value_of_the_type(text: str, model: Any, value: Any) -> None:
    assert parsed(text, model) == value


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "Ann", "age": 5}\n```',
        'Here it is [1]:\n```\n{"name": "Ann", "age": 5}\n```\n[1] a source',
        'I take {"name": 1} as a {draft} and {"name": "Ann", "age": 5} as the answer {"name": "Bob"}.',
        'Braces } ] { first, then {"name": "Ann", "age": 5}',
    ],
    ids=["fence", "footnote", "first that fits", "stray braces"],
)
def test_the_first_value_that_fits_is_found_between_other_words(text: str) -> None:
    assert parsed(text) == ANN


def test_a_part_of_a_broken_value_is_no_answer() -> None:
    assert "holds no JSON" in str(refused('{"people": [{"name": "Ann"}, {"name": "Bob"'))


def test_a_part_of_a_value_that_does_not_fit_is_no_answer() -> None:
    assert "does not fit Person" in str(refused('[{"name": "Ann"}]'))


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 50_000, '{"' * 200_000], ids=["[", "{", "strings"])
def test_hostile_nesting_is_refused_soon(text: str) -> None:
    assert "holds no JSON" in str(refused(text))


@pytest.mark.parametrize(
    ("text", "model", "value"),
    [
        ('{"value": [{"name": "Ann", "age": 5}]}', list[Person], [ANN]),
        ('{"value": {"type": "cat"}}', Cat | Dog, Cat()),
        ('{"value": 42}', int, 42),
        ('{"value": 1}', Boxed, Boxed(value=1)),
        ('{"value": {"value": 1}}', Boxed | Person, Boxed(value=1)),
        ('{"value": 1}', Boxed | Person, Boxed(value=1)),
    ],
)
def test_what_was_wrapped_is_unwrapped(text: str, model: Any, value: Any) -> None:
    assert parsed(text, model) == value


def test_null_for_an_optional_property_is_its_default() -> None:
    assert parsed('{"name": "Ann", "age": null, "born": null}') == Person(name="Ann")


def test_null_for_an_optional_property_is_its_default_inside_lists_and_unions() -> None:
    text = '{"value": [{"type": "cat", "lives": null}, {"type": "dog", "name": "Rex"}]}'
    assert parsed(text, list[Cat | Dog]) == [Cat(), Dog("Rex")]


def test_what_does_not_fit_is_named_with_path_and_expectation() -> None:
    error = refused('{"value": [{"name": "Ann"}, {"age": "old"}]}', list[Person], profile="mini")
    assert str(error) == (
        "The answer of 'mini' does not fit list_Person: 1.name: Field required; 1.age: Input should be a "
        "valid integer, unable to parse string as an integer (got 'old')."
    )


def test_a_struct_that_does_not_fit_is_named_with_path_and_expectation() -> None:
    assert "fit Cat: lives: Expected `int`, got `str`" in str(refused('{"type": "cat", "lives": "x"}', Cat))


def test_a_truncated_answer_names_the_limit_in_force() -> None:
    error = refused('{"name": "An', finish_reason=FinishReason.LENGTH, metadata={"max_tokens": 7})
    assert "truncated by the token limit (max_tokens 7)" in str(error)


def test_a_truncated_answer_names_the_tokens_if_the_limit_is_unknown() -> None:
    error = refused('{"name"', finish_reason=FinishReason.LENGTH, usage=Usage(output_tokens=9))
    assert "truncated by the token limit after 9 output tokens" in str(error)


def test_a_part_of_a_truncated_answer_is_no_answer() -> None:
    error = refused('First {"name": "Ann"} and', finish_reason=FinishReason.LENGTH)
    assert "truncated" in str(error)


def test_a_whole_value_counts_although_the_limit_was_reached_after_it() -> None:
    completion = Completion(text='{"name": "Ann", "age": 5}\n\n\n', finish_reason=FinishReason.LENGTH)
    assert completion.parse(Person) == ANN


@pytest.mark.parametrize(
    ("text", "fields", "said"),
    [
        ("", {}, "is empty; expected Person"),
        ("I cannot\nhelp with that.", {}, "no JSON for Person but"),
        ("", {"finish_reason": FinishReason.CONTENT_FILTER}, "content filter"),
        ("", {"tool_calls": (ToolCall("1", "now", {}),)}, "a call of tools (now)"),
    ],
    ids=["empty", "refusal", "filter", "tools"],
)
def test_an_answer_without_a_value_says_why(text: str, fields: dict[str, Any], said: str) -> None:
    assert said in str(refused(text, **fields))


def test_the_model_is_told_what_did_not_fit() -> None:
    assert "name: Field required" in validation_message(refused("{}"))


@pytest.mark.parametrize(
    ("response_format", "name"),
    [
        (Person, "Person"),
        (list[Person], "list_Person"),
        (Cat | Dog, "Cat_Dog"),
        (Literal["a b"], "Literal_a_b"),
        ({"title": "Größe " * 20, "type": "object"}, None),
        ({"type": "object"}, "answer"),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}, "x"),
        ({"type": "json_schema", "name": "x", "schema": {}}, "x"),
    ],
)
def test_the_name_of_a_schema_is_one_that_providers_take(response_format: Any, name: str | None) -> None:
    found = schema_name(response_format)
    assert name is None or found == name
    assert found.isascii()
    assert 1 <= len(found) <= 64


def test_the_format_of_openai_has_a_strict_schema() -> None:
    assert json_schema_format(Boxed, True) == {
        "type": "json_schema",
        "json_schema": {
            "name": "Boxed",
            "strict": True,
            "schema": {
                "type": "object",
                "title": "Boxed",
                "properties": {"value": {"type": "integer", "title": "Value"}},
                "required": ["value"],
                "additionalProperties": False,
            },
        },
    }


@pytest.mark.parametrize(
    "response_format",
    [
        Basket,
        dict[str, int],
        {"type": "json_schema", "json_schema": {"name": "x", "strict": False, "schema": {"type": "object"}}},
    ],
)
def test_what_cannot_be_strict_is_asked_for_without(response_format: Any) -> None:
    assert json_schema_format(response_format, True)["json_schema"]["strict"] is False


@pytest.mark.parametrize(("response_format", "mode"), [(Person, False), ({"type": "json_object"}, True)])
def test_json_without_a_schema_can_be_asked_for(response_format: Any, mode: bool) -> None:
    assert json_schema_format(response_format, mode) == {"type": "json_object"}


def test_the_instruction_shows_the_schema_of_an_object() -> None:
    schema = json.loads(schema_instruction(list[int]).partition("\n")[2])
    assert schema["properties"]["value"] == {"type": "array", "items": {"type": "integer"}}


def test_the_instruction_goes_to_the_end_of_the_system_turn() -> None:
    conversation = Conversation.create("hi", system="be brief")
    changed = with_instruction(conversation, Person)
    assert [turn.role for turn in changed.turns] == ["system", "user"]
    assert changed.turns[0].content == f"be brief\n\n{schema_instruction(Person)}"
    assert conversation == Conversation.create("hi", system="be brief")


def test_the_instruction_goes_to_the_end_of_a_system_turn_of_parts() -> None:
    changed = with_instruction(Conversation([Turn("system", [TextPart("be brief")])]), Person)
    assert changed.turns[0].text == f"be brief\n\n{schema_instruction(Person)}"


def test_the_instruction_goes_in_front_if_there_is_no_system_turn() -> None:
    changed = with_instruction(Conversation.create("hi"), Person)
    assert changed.turns == [Turn("system", schema_instruction(Person)), Turn("user", "hi")]


@pytest.mark.parametrize("draft", ['{"name": "Bob"}', "no JSON"])
def test_a_draft_in_the_thinking_before_the_answer_does_not_count(draft: str) -> None:
    assert parsed(f'<think>\n{draft}\n</think>\n{{"name": "Ann", "age": 5}}') == ANN


def test_tags_inside_the_value_are_text() -> None:
    text = '{"name": "<think>Ann</think>", "age": 5}'
    assert parsed(text) == Person(name="<think>Ann</think>", age=5)
