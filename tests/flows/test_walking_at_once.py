"""Many walks at once, and walks that are cancelled."""

import asyncio
import math

import pytest

from lmclient import Client, FlowError, ToolCall
from lmclient.flows import (
    Agent,
    AgentContext,
    AgentType,
    FlowExecutor,
    TextHandler,
    ToolCallingHandler,
    merge_contexts,
)
from lmclient.flows.pacing import BEGINNINGS, turn


async def test_twenty_walks_of_the_same_agents_keep_apart(executor, model, context):
    model.reply(lambda request: f"About {request.prompt}", times=None)
    model.rendezvous(20)
    start = AgentType.START_CONVERSATION
    first = Agent("First", start, template="{{x}}", handler=TextHandler("a"), next="Second")
    second = Agent("Second", AgentType.CONVERSATION, template="more of {{x}}", handler=TextHandler("b"))
    walks = [executor.walk("First", context(first, second, x=str(number))) for number in range(20)]
    results = [result for (result,) in await asyncio.gather(*walks)]
    assert [r.get("b") for r in results] == [f"About more of {number}" for number in range(20)]
    for number, result in enumerate(results):
        assert [turn.text for turn in result.conversation.turns] == [
            str(number),
            f"About {number}",
            f"more of {number}",
        ]
    assert {r.statistics.requests for r in results} == {2}


async def test_cancelling_a_walk_cancels_every_call_in_flight(executor, model, context):
    model.reply(delay=math.inf, times=None)
    agent = Agent("Slow", AgentType.COMPLETION, template="[[x]]")
    walking = asyncio.create_task(executor.walk("Slow", context(agent, x=list("abcde"))))
    await model.wait_for_requests(5)
    assert model.in_flight == 5
    walking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await walking
    assert model.in_flight == 0
    assert len(model.requests) == 5


async def test_cancelling_a_walk_cancels_the_tool_that_runs(executor, model, context):
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        """Waits."""
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    model.reply("", tool_calls=[ToolCall("c", "wait", {})])
    handler = ToolCallingHandler(TextHandler("t"), [wait])
    used = context(Agent("A", AgentType.START_CONVERSATION, template="x", handler=handler))
    walking = asyncio.create_task(executor.walk("A", used))
    await started.wait()
    walking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await walking
    assert ended.is_set()
    # No call without a result is left in the history: the next walk may go on with it.
    assert [turn.role.value for turn in used.conversation.turns] == ["user"]


async def test_a_timeout_around_a_walk_works(executor, model, context):
    model.reply(delay=math.inf)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await executor.walk("A", context(Agent("A", AgentType.COMPLETION, template="x")))
    assert model.in_flight == 0


def test_a_script_walks_without_an_event_loop(model, tmp_path):
    model.reply("Hello.")
    agent = Agent("A", AgentType.COMPLETION, template="x")
    with Client(model.settings(tmp_path)) as client:
        (result,) = FlowExecutor(client).walk_sync("A", AgentContext([agent]))
    assert result.get("response") == "Hello."


async def test_an_async_client_has_no_walk_sync(executor, context):
    with pytest.raises(FlowError, match="walk_sync needs a FlowExecutor made of a Client"):
        executor.walk_sync("A", context(Agent("A", AgentType.COMPLETION, template="x")))


async def test_a_thousand_branches_leave_the_loop_to_others(executor, model, context):
    model.reply("ok", times=None)
    agent = Agent(
        "Many",
        AgentType.COMPLETION,
        template="[[x]]",
        merge=lambda contexts: merge_contexts(["response"], contexts),
    )
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    (result,) = await executor.walk("Many", context(agent, x=list(range(1000))))
    counting.cancel()
    assert len(result.get_all("response")) == 1000
    assert turns > 1000 / BEGINNINGS
    assert len(result.trace) == 1000


async def test_cancelled_waiters_do_not_take_the_turns_of_others():
    waiting = [asyncio.create_task(turn()) for _ in range(5 * BEGINNINGS)]
    await asyncio.sleep(0)
    for task in waiting[BEGINNINGS : 4 * BEGINNINGS]:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(not task.cancelled() for task in waiting) == 2 * BEGINNINGS
