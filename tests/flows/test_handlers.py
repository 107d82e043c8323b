"""Handlers, with completions as a client gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from lmclient import Chunk, Completion, FinishReason, FlowError, Usage
from lmclient.flows import (
    AccumulateTextHandler,
    AgentContext,
    CsvHandler,
    CsvRowsHandler,
    JsonHandler,
    TextHandler,
    ToolCallingHandler,
)


@pytest.fixture
def context() -> AgentContext:
    return AgentContext()


def values(context: AgentContext) -> dict[str, list[Any]]:
    return {key: context.get_all(key) for key in list(context.keys())}


def handled(handler, text, context, **fields) -> dict[str, list[Any]]:
    completion = Completion(**{"text": text, "finish_reason": FinishReason.STOP, **fields})
    assert handler.fresh().handle(completion, context) is True
    return values(context)


# Text


def test_text_is_put_under_the_key(context):
    assert handled(TextHandler("a"), "Hello", context) == {"a": ["Hello"]}


def test_reasoning_is_put_beside_the_text(context):
    assert handled(TextHandler("a"), "Hello", context, reasoning="So") == {
        "a": ["Hello"],
        "a_reasoning": ["So"],
    }


def test_reasoning_of_an_earlier_answer_does_not_stay(context):
    context.set("a_reasoning", "old")
    assert handled(TextHandler("a"), "Hello", context) == {"a": ["Hello"]}


def test_text_is_transformed(context):
    assert handled(TextHandler("a", transform=len), "Hello", context) == {"a": [5]}


def test_text_grows_with_the_chunks(context):
    handler = TextHandler("a").fresh()
    seen = []
    for chunk in (Chunk(reasoning="So "), Chunk(reasoning="what"), Chunk("Hel"), Chunk("lo")):
        handler.on_chunk(chunk, context)
        seen.append((context.get("a_reasoning"), context.get("a")))
    assert seen == [("So ", None), ("So what", None), ("So what", "Hel"), ("So what", "Hello")]


def test_a_second_attempt_grows_anew(context):
    handler = TextHandler("a")
    handler.fresh().on_chunk(Chunk("wrong", "because"), context)
    handler.fresh().on_chunk(Chunk("ri"), context)
    assert values(context) == {"a": ["ri"]}


def test_on_chunk_is_told_after_the_context_was_changed(context):
    seen = []
    handler = TextHandler("a", on_chunk=lambda chunk, context: seen.append((chunk.text, context.get("a"))))
    handler.fresh().on_chunk(Chunk("Hello"), context)
    assert seen == [("Hello", "Hello")]


def test_what_on_chunk_gives_may_be_awaited(context):
    async def told(chunk, context):
        pass

    handler = TextHandler("a", on_chunk=told)
    awaitable = handler.on_chunk(Chunk("x"), context)
    awaitable.close()
    assert awaitable.__name__ == "told"


def test_texts_are_accumulated(context):
    handler = AccumulateTextHandler("a", transform=str.upper)
    handled(handler, "x", context)
    assert handled(handler, "y", context) == {"a": ["X", "Y"]}


# JSON


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"a": "x", "b": 1, "c": null, "d": true}', {"a": ["x"], "b": [1], "c": [None], "d": [True]}),
        ('{"a": [1, "x"], "b": []}', {"a": [1, "x"], "b": []}),
        ('{"a": [{"b": 1, "c": 2}, {"b": 3, "c": 4}]}', {"b": [1, 3], "c": [2, 4]}),
        ('{"a": [{"b": 1}, {"b": 2, "c": 3}]}', {"b": [1, 2], "c": [None, 3]}),
        (
            '{"a": [{"b": {"c": 1}, "d": ["x", "y"]}, {"b": {"c": 2}, "d": []}]}',
            {"c": [1, 2], "d": ["x", "y"]},
        ),
        ('{"a": {"b": {"c": 1}, "d": [2]}}', {"c": [1], "d": [2]}),
        ('{"a": 1, "b": {"a": 2}}', {"a": [1, 2]}),
        ('{"a": [[1, 2], [3]]}', {"a": [[1, 2], [3]]}),
        ('[{"a": 1}, {"a": 2}]', {"a": [1, 2]}),
        ("{}", {}),
    ],
)
def test_json_is_flattened(answer, expected, context):
    assert handled(JsonHandler(), answer, context) == expected


def test_fields_of_json_have_the_prefix(context):
    assert handled(JsonHandler("p_"), '{"a": 1, "b": {"c": 2}}', context) == {"p_a": [1], "p_c": [2]}


def test_an_array_without_names_has_the_prefix_as_its_key(context):
    assert handled(JsonHandler("p"), '["x", "y"]', context) == {"p": ["x", "y"]}


def test_an_array_without_names_and_prefix_is_asked_for_again(context):
    with pytest.raises(FlowError, match="named fields"):
        handled(JsonHandler(), '["x", "y"]', context)


def test_json_replaces_what_was_there(context):
    context.set_all("a", [1, 2, 3])
    assert handled(JsonHandler(), '{"a": [4]}', context) == {"a": [4]}


class Plan(pydantic.BaseModel):
    title: str
    steps: list[str]
    days: int = 1


@dataclass
class PlanData:
    title: str
    steps: list[str]


class PlanStruct(msgspec.Struct):
    title: str
    steps: list[str]


class PlanDict(TypedDict):
    title: str
    steps: list[str]


@pytest.mark.parametrize("schema", [Plan, PlanData, PlanStruct])
def test_with_a_schema_the_object_is_stored(schema, context):
    handled(JsonHandler("plan", schema), "{title: 'T', steps: ['x',]}", context)
    assert context.get("plan") == schema(title="T", steps=["x"])


def test_a_typed_dict_is_a_schema(context):
    answer = '```json\n{"title": "T", "steps": []}\n```'
    assert handled(JsonHandler("plan", PlanDict), answer, context) == {"plan": [{"title": "T", "steps": []}]}


def test_a_json_schema_is_a_schema(context):
    assert handled(JsonHandler("a", {"type": "array"}), '{"x": 1} [2]', context) == {"a": [[2]]}


def test_without_a_prefix_the_object_is_the_response(context):
    assert handled(JsonHandler(schema=dict[str, int]), '{"a": 1}', context) == {"response": [{"a": 1}]}


def test_the_first_value_that_fits_the_schema_counts(context):
    answer = 'See [1]. An example: {"title": "x"}. The plan: {"title": "T", "steps": ["y"]}'
    assert handled(JsonHandler("plan", Plan), answer, context)["plan"][0].steps == ["y"]


def test_a_level_too_much_is_taken_away(context):
    answer = '{"plans": [{"title": "T", "steps": []}]}'
    assert len(handled(JsonHandler("plans", list[Plan]), answer, context)["plans"][0]) == 1


def test_what_does_not_fit_is_named_in_the_retry_message(context):
    handler = JsonHandler("plan", Plan)
    with pytest.raises(FlowError) as caught:
        handled(handler, '{"title": "T", "steps": "none"}', context)
    message = handler.retry_message(caught.value)
    assert "steps" in message
    assert '"properties"' in message


def test_the_retry_message_of_no_json_says_so(context):
    with pytest.raises(FlowError, match="no JSON object"):
        handled(JsonHandler(), "Sorry.", context)


def test_a_truncated_answer_is_not_repaired_but_named(context):
    with pytest.raises(FlowError, match=r"truncated by the token limit after 7 tokens"):
        handled(
            JsonHandler(),
            '{"a": [1, 2',
            context,
            finish_reason=FinishReason.LENGTH,
            usage=Usage(output_tokens=7),
        )


def test_a_truncated_answer_whose_json_was_complete_is_taken(context):
    answer = '{"a": 1}\nThis means that'
    assert handled(JsonHandler(), answer, context, finish_reason=FinishReason.LENGTH) == {"a": [1]}


def partials(chunks: list[str], context: AgentContext) -> list[Any]:
    seen: list[Any] = []
    handler = JsonHandler(on_partial=lambda value, context: seen.append(value)).fresh()
    for chunk in chunks:
        handler.on_chunk(Chunk(chunk), context)
    return seen


def test_partial_json_is_offered_while_it_streams(context):
    chunks = ["Here:\n```json\n", '{"a": "He', 'llo", "b": [', "1, 2", "]}", "\n``", "`"]
    assert partials(chunks, context) == [
        {"a": "He"},
        {"a": "Hello", "b": []},
        {"a": "Hello", "b": [1, 2]},
    ]


def test_looking_at_partial_json_costs_little_for_each_chunk(context):
    chunks = ['{"a": "', *["word "] * 20_000]
    assert 100 < len(partials(chunks, context)) < 1000


def test_a_schema_that_json_cannot_carry_is_an_error():
    with pytest.raises(TypeError, match="no type that JSON can carry"):
        JsonHandler("a", AgentContext)


# CSV


def test_columns_are_put_under_their_names(context):
    answer = "Here:\n```csv\nname;age\nAnn;30\nBob;40\n```"
    assert handled(CsvHandler("p_"), answer, context) == {"p_name": ["Ann", "Bob"], "p_age": ["30", "40"]}


def test_no_table_is_asked_for_again(context):
    with pytest.raises(FlowError, match="no CSV table"):
        handled(CsvHandler(), "Sorry, I cannot.", context)


class Person(pydantic.BaseModel):
    full_name: str
    age: int | None = None
    active: bool = False


@dataclass
class PersonData:
    full_name: str
    age: int | None = None
    active: bool = False


class PersonStruct(msgspec.Struct):
    full_name: str
    age: int | None = None
    active: bool = False


@pytest.mark.parametrize("row", [Person, PersonData, PersonStruct])
def test_rows_are_typed(row, context):
    answer = 'Full Name,Age,Active,Remark\n"Lee, Ann","1,030",yes,x\nBob,,no,y'
    handled(CsvRowsHandler("people", row), answer, context)
    expected = [
        row(full_name="Lee, Ann", age=1030, active=True),
        row(full_name="Bob", age=None, active=False),
    ]
    assert context.get_all("people") == expected


def test_rows_without_a_header_have_the_fields_in_order(context):
    handled(CsvRowsHandler("people", Person), "Ann,30,true\nBob,40,false", context)
    assert context.get_all("people", Person)[1] == Person(full_name="Bob", age=40)


def test_a_row_that_does_not_fit_is_named(context):
    handler = CsvRowsHandler("people", Person)
    with pytest.raises(FlowError, match="row 2 does not fit: age") as caught:
        handled(handler, "full_name,age\nAnn,30\nBob,old", context)
    assert "full_name,age,active" in handler.retry_message(caught.value)


def test_a_row_needs_fields():
    with pytest.raises(TypeError, match="no fields"):
        CsvRowsHandler("a", int)


# Tools


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def test_tools_are_described_and_found_by_name():
    handler = ToolCallingHandler(TextHandler("a"), [add]).fresh()
    assert handler.tool_functions == {"add": add}
    assert [(tool.name, tool.description) for tool in handler.tools] == [("add", "Adds two numbers.")]


def test_the_delegate_reads_the_answer(context):
    assert handled(ToolCallingHandler(JsonHandler(), [add]), '{"a": 1}', context) == {"a": [1]}


def test_the_delegate_is_fresh_for_each_attempt(context):
    handler = ToolCallingHandler(TextHandler("a"), [add])
    handler.fresh().on_chunk(Chunk("wrong"), context)
    handler.fresh().on_chunk(Chunk("right"), context)
    assert context.get("a") == "right"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (TextHandler, ("a",)),
        (AccumulateTextHandler, ("a",)),
        (JsonHandler, ()),
        (CsvHandler, ()),
        (CsvRowsHandler, ("a", Person)),
        (ToolCallingHandler, (TextHandler("a"), [add])),
    ],
)
def test_a_subclass_stays_one_for_each_attempt_and_begins_anew(kind, arguments, context):
    class Own(kind):
        seen = 0

        def handle(self, completion, context):
            self.seen += 1
            return self.seen == 1

    handler = Own(*arguments)
    answer = Completion(text="x")
    assert handler.fresh().handle(answer, context)
    assert handler.fresh().handle(answer, context)


def test_the_delegate_asks_again():
    message = ToolCallingHandler(CsvHandler(), [add]).retry_message(None)
    assert "CSV" in message


def test_two_tools_of_one_name_are_an_error():
    with pytest.raises(FlowError, match="'add'"):
        ToolCallingHandler(TextHandler("a"), [add, add])


# All

_PIECES = st.sampled_from(
    [
        *"{}[]\",:'`;|\t\n\\ a1-",
        "```json\n",
        "```csv\n",
        "```",
        "1e999",
        '{"title": "T", "steps": [',
        "full_name,age\n",
        "“",
        "9" * 5000,
    ]
)


@pytest.mark.parametrize(
    "handler",
    [
        TextHandler("a"),
        AccumulateTextHandler("a"),
        JsonHandler(),
        JsonHandler("p", Plan),
        JsonHandler("p", PlanStruct),
        CsvHandler(),
        CsvRowsHandler("a", Person),
        CsvRowsHandler("a", PersonStruct),
        ToolCallingHandler(JsonHandler(), [add]),
    ],
    ids=lambda handler: type(handler).__name__,
)
@settings(max_examples=60, deadline=None)
@given(
    answer=st.one_of(st.text(), st.lists(_PIECES, max_size=40).map("".join)),
    finish_reason=st.sampled_from(FinishReason),
)
def test_no_answer_makes_a_handler_raise_anything_but_its_failure(handler, answer, finish_reason):
    context = AgentContext()
    try:
        read = handler.fresh().handle(Completion(text=answer, finish_reason=finish_reason), context)
    except FlowError as failure:
        assert handler.retry_message(failure)
    else:
        assert read is True
        assert context.to_json()
