"""Agents whose models call tools."""

import asyncio
import threading

import msgspec
import pytest

from lmclient import FlowError, Role, Tool, ToolCall
from lmclient.flows import Agent, AgentType, TextHandler, ToolCallingHandler


async def weather(city: str, days: int = 1) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "days": days}


def time_of(city: str) -> str:
    """The time in a city."""
    return f"noon in {city}"


def broken() -> None:
    """Fails."""
    raise OSError("no such file")


def agent(*functions, **fields):
    handler = ToolCallingHandler(TextHandler("answer"), functions or [weather, time_of, broken])
    return Agent("Asker", AgentType.COMPLETION, **{"template": "Tell me.", "handler": handler, **fields})


def call(name, id="c1", **arguments):
    return ToolCall(id, name, arguments)


def turns(request):
    return [(turn.role.value, turn.text) for turn in request.conversation.turns]


async def test_two_rounds_one_after_the_other(executor, model, context):
    model.reply("", tool_calls=[call("weather", city="Rome")])
    model.reply("", tool_calls=[call("time_of", "c2", city="Rome")])
    model.reply("Sunny at noon.")
    (result,) = await executor.walk("Asker", context(agent()))
    assert turns(model.requests[2]) == [
        ("user", "Tell me."),
        ("assistant", ""),
        ("tool", '{"city":"Rome","days":1}'),
        ("assistant", ""),
        ("tool", "noon in Rome"),
    ]
    assert result.get("answer") == "Sunny at noon."
    assert result.graph_text() == "M, Asker, 🔧, 🔧"
    assert result.trace[0].calls == 3
    assert [tool.name for tool in model.requests[0].options.tools] == ["weather", "time_of", "broken"]


async def test_calls_of_one_answer_run_at_once_and_keep_their_order(executor, model, context):
    meeting = asyncio.Barrier(2)

    async def first() -> str:
        """First."""
        await meeting.wait()
        await asyncio.sleep(0)
        return "1"

    async def second() -> str:
        """Second."""
        await meeting.wait()
        return "2"

    model.reply("", tool_calls=[call("first"), call("second", "c2")])
    model.reply("Done.")
    await executor.walk("Asker", context(agent(first, second)))
    assert turns(model.requests[1])[2:] == [("tool", "1"), ("tool", "2")]


async def test_functions_that_block_run_at_once_in_threads(executor, model, context):
    meeting = threading.Barrier(2, timeout=5)

    def block() -> str:
        """Blocks."""
        meeting.wait()
        return "ok"

    model.reply("", tool_calls=[call("block"), call("block", "c2")])
    model.reply("Done.")
    await executor.walk("Asker", context(agent(block)))
    assert turns(model.requests[1])[2:] == [("tool", "ok"), ("tool", "ok")]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("fly"), "There is no tool 'fly'; the tools are: weather, time_of, broken."),
        (call("weather"), "city: the argument is missing"),
        (call("weather", city="Rome", days="soon"), "days"),
        (call("weather", town="Rome"), "town: there is no such argument"),
        (call("broken"), "The tool 'broken' failed: OSError: no such file"),
        (ToolCall("c1", "weather", None, '{"city": '), 'not a JSON object: {"city":'),
    ],
)
async def test_a_call_that_cannot_be_run_is_an_error_result(executor, model, context, wrong, told):
    model.reply("", tool_calls=[wrong])
    model.reply("Sorry.")
    (result,) = await executor.walk("Asker", context(agent()))
    tool_turn = model.requests[1].conversation.turns[-1]
    assert (tool_turn.role, tool_turn.is_error) == (Role.TOOL, True)
    assert told in tool_turn.text
    assert result.error is None


async def test_a_tool_without_arguments_is_called_with_none(executor, model, context):
    def ping() -> None:
        """Pings."""

    model.reply("", tool_calls=[call("ping")])
    model.reply("Done.")
    await executor.walk("Asker", context(agent(ping)))
    assert turns(model.requests[1])[-1] == ("tool", "null")


async def test_rounds_are_capped_and_the_delegate_gets_the_last_answer(executor, model, context):
    model.reply("More.", tool_calls=[call("time_of", city="Rome")], times=None)
    (result,) = await executor.walk("Asker", context(agent(max_tool_rounds=2)))
    assert len(model.requests) == 3
    assert result.get("answer") == "More."
    assert result.graph_text() == "M, Asker, 🔧, 🔧, 🔧"


async def test_functions_of_the_agent_are_run_as_well(executor, model, context):
    model.reply("", tool_calls=[call("time_of", city="Rome")])
    model.reply("Noon.")
    asker = agent(tools=[time_of], handler=TextHandler("answer"))
    (result,) = await executor.walk("Asker", context(asker))
    assert result.get("answer") == "Noon."


async def test_calls_of_tools_without_functions_go_to_the_handler(executor, model, context):
    model.reply("I'd look.", tool_calls=[call("look")])
    tool = Tool("look", "Looks.", {"type": "object", "properties": {}})
    asker = agent(tools=[tool], handler=TextHandler("answer"))
    (result,) = await executor.walk("Asker", context(asker))
    assert len(model.requests) == 1
    assert result.last_completion.tool_calls[0].name == "look"


async def test_a_forced_call_is_forced_once(executor, model, context):
    model.reply("", tool_calls=[call("time_of", city="Rome")])
    model.reply("Noon.")
    await executor.walk("Asker", context(agent(tool_choice="required")))
    assert [request.options.tool_choice for request in model.requests] == ["required", "auto"]


async def test_a_struct_as_result_is_json(executor, model, context):
    class Place(msgspec.Struct):
        name: str

    def place() -> Place:
        """A place."""
        return Place("Rome")

    model.reply("", tool_calls=[call("place")])
    model.reply("Done.")
    await executor.walk("Asker", context(agent(place)))
    assert turns(model.requests[1])[-1] == ("tool", '{"name":"Rome"}')


async def test_a_function_that_cannot_be_a_tool_names_the_agent(executor, model, context):
    def loose(**anything: object) -> None:
        """Takes anything."""

    (result,) = await executor.walk("Asker", context(agent(tools=[loose])))
    assert isinstance(result.error, FlowError)
    assert "'Asker'" in str(result.error)


async def test_a_round_with_provider_items_is_kept_for_the_next_agent(executor, model, context):
    model.reply("", tool_calls=[call("time_of", city="Rome")], reasoning="I need the time.")
    model.reply("Noon.")
    model.reply("Thanks.")
    second = Agent("Second", AgentType.CONVERSATION, template="Go on.")
    await executor.walk("Asker", context(agent(next="Second"), second))
    roles = [turn.role.value for turn in model.requests[2].conversation.turns]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert model.requests[2].conversation.turns[1].reasoning == "I need the time."
