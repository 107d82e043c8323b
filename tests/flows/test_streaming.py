"""Streamed answers: chunks in the context, updates and events."""

import contextlib

import pytest

from lmclient import FlowError, ServerError, StreamInterruptedError, ToolCall
from lmclient.flows import (
    Agent,
    AgentType,
    FlowExecutor,
    Handler,
    StepLimitError,
    TextHandler,
    ToolCallingHandler,
    merge_contexts,
)


def thinker(**fields):
    default = {"template": "Think.", "handler": TextHandler("t")}
    return Agent("Thinker", AgentType.COMPLETION, **{**default, **fields})


async def events_of(executor, name, context):
    return [event async for event in executor.stream(name, context)]


async def test_text_and_reasoning_grow_chunk_by_chunk(client, model, context):
    model.reply("All good.", reasoning="Let me see.")
    seen = []

    def update(context):
        seen.append((context.get("t_reasoning"), context.get("t")))

    started = context(thinker())
    started.streaming = True
    (result,) = await FlowExecutor(client, on_update=update).walk("Thinker", started)
    assert seen == [
        ("Let", None),
        ("Let me", None),
        ("Let me see.", None),
        ("Let me see.", "All"),
        ("Let me see.", "All good."),
    ]
    assert (result.get("t"), result.get("t_reasoning")) == ("All good.", "Let me see.")
    assert model.requests[0].stream


async def test_without_the_flag_nothing_is_streamed(client, model, context):
    model.reply("All good.")
    seen = []
    await FlowExecutor(client, on_update=seen.append).walk("Thinker", context(thinker()))
    assert seen == []
    assert not model.requests[0].stream


async def test_the_events_of_a_linear_walk(executor, model, context):
    model.reply("All good.")
    events = await events_of(executor, "Thinker", context(thinker()))
    assert [event.type for event in events] == ["step_started", "chunk", "chunk", "step_finished", "finished"]
    assert [event.chunk.text for event in events if event.type == "chunk"] == ["All", " good."]
    assert events[0].agent == "Thinker"
    assert events[-1].contexts[0].get("t") == "All good."


async def test_the_events_of_branches_tools_and_errors(executor, model, context):
    def look() -> int:
        """Looks."""
        return 5

    model.reply("", tool_calls=[ToolCall("c", "look", {})], when="a")
    model.reply("Five.", when="a")
    model.reply(ServerError("down", status=500, retryable=False), when="b")
    agent = thinker(
        template="[[x]]",
        handler=ToolCallingHandler(TextHandler("t"), [look]),
        merge=lambda contexts: merge_contexts(["t"], contexts),
    )
    events = await events_of(executor, "Thinker", context(agent, x=["a", "b"]))
    kinds = [event.type for event in events if event.type != "chunk"]
    assert " ".join(kinds) == ("step_started branch branch tool_call merged error step_finished finished")
    branches = [event for event in events if event.type == "branch"]
    assert [(event.number, event.count) for event in branches] == [(1, 2), (2, 2)]
    (called,) = [event for event in events if event.type == "tool_call"]
    assert (called.call.name, called.result.content) == ("look", "5")
    (failed,) = [event for event in events if event.type == "error"]
    assert (failed.agent, str(failed.error)) == ("Thinker", "down")
    assert [c.error is None for c in events[-1].contexts] == [True, False]


async def test_the_text_before_a_tool_call_is_no_part_of_the_answer(executor, model, context):
    def look() -> int:
        """Looks."""
        return 5

    model.reply("Let me look.", tool_calls=[ToolCall("c", "look", {})])
    model.reply("It is five.")
    texts = []
    agent = thinker(handler=ToolCallingHandler(TextHandler("t"), [look]))
    async for event in executor.stream("Thinker", context(agent)):
        if event.type == "chunk" and event.chunk.text:
            texts.append(event.context.get("t"))
    assert texts == ["Let", "Let me", "Let me look.", "It", "It is", "It is five."]
    assert model.requests[1].conversation.turns[1].text == "Let me look."


async def test_leaving_the_events_cancels_the_walk(executor, model, context):
    model.reply("one two three", times=None)
    agent = thinker(next="Thinker")
    async with contextlib.aclosing(executor.stream("Thinker", context(agent))) as events:
        async for event in events:
            if event.type == "chunk":
                break
    assert model.in_flight == 0
    assert len(model.requests) == 1


async def test_a_walk_that_cannot_begin_is_raised_by_the_events(executor, context):
    with pytest.raises(FlowError, match="no agent 'Nobody'"):
        await events_of(executor, "Nobody", context(thinker()))


async def test_a_walk_stopped_by_its_limit_is_raised_after_the_last_event(client, model, context):
    model.reply(times=None)
    kinds = []

    async def read():
        executor = FlowExecutor(client, max_steps=1)
        async for event in executor.stream("Thinker", context(thinker(next="Thinker"))):
            kinds.append(event.type)

    with pytest.raises(StepLimitError):
        await read()
    assert kinds == ["step_started", "step_finished", "error", "finished"]


async def test_a_stream_that_breaks_counts_what_had_arrived(executor, model, context):
    model.reply("one two three", error=StreamInterruptedError("gone"), times=None)
    started = context(thinker())
    started.streaming = True
    (result,) = await executor.walk("Thinker", started)
    assert isinstance(result.error, StreamInterruptedError)
    assert result.graph_text() == "M, Thinker, ❌"
    assert result.statistics.output_tokens == 3


async def test_a_handler_that_fails_on_a_chunk_names_the_agent(executor, model, context):
    class Fragile(Handler):
        def on_chunk(self, chunk, context):
            raise ValueError("no")

    model.reply("one two")
    started = context(thinker(handler=Fragile()))
    started.streaming = True
    (result,) = await executor.walk("Thinker", started)
    assert str(result.error) == "Agent 'Thinker': ValueError: no"
    assert model.in_flight == 0


async def test_async_callbacks_are_awaited(client, model, context):
    class Watching(TextHandler):
        def fresh(self):
            return Watching("t")

        async def on_chunk(self, chunk, context):
            context.append("heard", chunk.text)

    async def update(context):
        context.append("updates", 1)

    model.reply("one two")
    started = context(thinker(handler=Watching("t")))
    started.streaming = True
    (result,) = await FlowExecutor(client, on_update=update).walk("Thinker", started)
    assert result.get_all("heard") == ["one", " two"]
    assert result.get_all("updates") == [1, 1]
