"""The context: values, copies, flags, JSON."""

import dataclasses
import datetime
import json
from decimal import Decimal

import pydantic
import pytest

from lmclient import AsyncClient, Conversation, FlowError, ToolCall
from lmclient.flows import (
    Agent,
    AgentContext,
    AgentType,
    ErrorType,
    FlowExecutor,
    SkipCompletion,
    TextHandler,
    ToolCallingHandler,
)


@pytest.fixture
def filled():
    context = AgentContext()
    context.set("one", 1)
    context.set_all("many", ["a", "b"])
    return context


def test_get_is_the_first_value(filled):
    assert (filled.get("one"), filled.get("many"), filled.get("gone")) == (1, "a", None)


def test_get_all_is_a_new_list(filled):
    filled.get_all("many").append("c")
    assert filled.get_all("many") == ["a", "b"]
    assert filled.get_all("gone") == []


def test_append_and_remove(filled):
    filled.append("many", "c")
    filled.append("new", 1)
    filled.remove("one")
    filled.remove("gone")
    assert filled.get_all("many") == ["a", "b", "c"]
    assert list(filled) == ["many", "new"]
    assert "one" not in filled


def test_a_text_is_no_list_of_values(filled):
    with pytest.raises(FlowError, match="set_all"):
        filled.set_all("x", "abc")


class Point(pydantic.BaseModel):
    x: int


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ("5", int, 5),
        (5, int, 5),
        (5, str, "5"),
        ("1.5", float, 1.5),
        (5, float, 5.0),
        ("true", bool, True),
        (True, bool, True),
        ("0.1", Decimal, Decimal("0.1")),
        ({"x": 1}, Point, Point(x=1)),
        (Point(x=1), Point, Point(x=1)),
        ([1, 2], list[int], [1, 2]),
        ("2026-01-02", datetime.date, datetime.date(2026, 1, 2)),
    ],
)
def test_a_value_as_a_type(value, type_, expected):
    context = AgentContext()
    context.set("k", value)
    found = context.get("k", type_)
    assert (found, type(found)) == (expected, type(expected))
    assert context.get_all("k", type_) == [expected]


def test_a_value_of_another_type_names_the_key(filled):
    with pytest.raises(FlowError, match=r"'many' is 'a', not int"):
        filled.get("many", int)
    assert filled.get("gone", int) is None


def test_a_copy_is_independent_but_for_the_statistics(filled):
    filled.conversation = Conversation.create("Hi")
    filled.set("deep", {"list": [1]})
    twin = filled.copy()
    twin.set("one", 2)
    twin.graph.append("M")
    twin.conversation.add("assistant", "Hello")
    twin.get("deep")["list"].append(2)
    assert (filled.get("one"), filled.graph, len(filled.conversation.turns)) == (1, [], 1)
    assert filled.get("deep") == {"list": [1]}
    assert twin.statistics is filled.statistics


async def test_a_json_round_trip_keeps_everything(executor, model, context):
    def look() -> int:
        """Looks."""
        return 5

    model.reply("", tool_calls=[ToolCall("c", "look", {"a": [1]})], reasoning="hm")
    model.reply("Five.")
    agent = Agent(
        "A",
        AgentType.START_CONVERSATION,
        system_prompt="s",
        template="{{x}}",
        handler=ToolCallingHandler(TextHandler("t"), [look]),
    )
    (result,) = await executor.walk("A", context(agent, x="ü", data={"a": [1, None, True]}, many=["a"]))
    result.skip_next_completion = SkipCompletion.SKIP
    result.always_skip_cache = True
    again = AgentContext.from_json(result.to_json(), [agent])
    assert json.loads(again.to_json()) == json.loads(result.to_json())
    assert again.conversation == result.conversation
    assert again.trace == result.trace
    assert again.statistics == result.statistics
    assert again.last_completion == result.last_completion
    assert again.graph_text() == result.graph_text()
    assert again.get("data") == result.get("data")
    assert (again.get_all("many"), again.is_single("many")) == (["a"], False)
    assert (again.skip_next_completion, again.always_skip_cache) == (SkipCompletion.SKIP, True)
    assert again.agents == {"A": agent}


async def test_a_walk_goes_on_after_a_json_round_trip(executor, model, context, prompts):
    model.reply("Hi.")
    model.reply("Fine.")
    agents = [
        Agent("A", AgentType.START_CONVERSATION, template="Hello."),
        Agent("B", AgentType.CONVERSATION, template="Go on."),
    ]
    (result,) = await executor.walk("A", context(*agents))
    (result,) = await executor.walk("B", AgentContext.from_json(result.to_json(), agents))
    assert prompts()[1] == [("user", "Hello."), ("assistant", "Hi."), ("user", "Go on.")]
    assert result.graph_text() == "M, A, ‖, M, B"
    assert [step.parents for step in result.trace] == [(), (1,)]


def test_an_error_is_kept_as_its_message(filled):
    filled.fail(ValueError("boom"), ErrorType.PARSING)
    again = AgentContext.from_json(filled.to_json())
    assert (again.error_type, str(again.error)) == (ErrorType.PARSING, "boom")


@dataclasses.dataclass
class Place:
    name: str


def test_what_json_can_carry_in_another_form_is_kept_and_the_rest_left_out(filled):
    filled.set("point", Point(x=1))
    filled.set("place", Place("Rome"))
    filled.set("keys", {1: "a"})
    filled.set("object", object())
    filled.set("surrogate", "\ud83d")
    again = AgentContext.from_json(filled.to_json())
    assert again.get("point", Point) == Point(x=1)
    assert again.get("place", Place) == Place("Rome")
    assert again.get("keys") == {"1": "a"}
    assert "object" not in again
    assert "surrogate" not in again


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"values": 1}', b"\xff"])
def test_what_is_no_context_is_refused(text):
    with pytest.raises(FlowError, match="not the JSON of a context"):
        AgentContext.from_json(text)


@pytest.mark.parametrize(
    ("once", "always", "expected"), [(True, False, [True, False]), (False, True, [True, True])]
)
async def test_the_cache_is_skipped_once_or_always(executor, model, context, once, always, expected):
    model.reply(times=2)
    second = Agent("B", AgentType.COMPLETION, template="x")
    started = context(Agent("A", AgentType.COMPLETION, template="x", next="B"), second)
    started.skip_cache, started.always_skip_cache = once, always
    await executor.walk("A", started)
    assert [request.skip_cache for request in model.requests] == expected


async def test_statistics_tell_cached_answers_apart(model, context, tmp_path):
    model.reply("Hello there.")
    async with AsyncClient(model.settings(tmp_path, cache={"enabled": True})) as client:
        agent = Agent("A", AgentType.COMPLETION, template="x")
        executor = FlowExecutor(client)
        (result,) = await executor.walk("A", context(agent))
        (result,) = await executor.walk("A", result)
    statistics = result.statistics
    assert (statistics.requests, statistics.cached, statistics.output_tokens) == (1, 1, 2)
