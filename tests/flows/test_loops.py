"""Loops: graded answers that are sent back, and the bound on steps."""

import pytest

from lmclient import FlowError
from lmclient.flows import Agent, AgentNext, AgentType, FlowExecutor, StepLimitError, TextHandler


async def test_an_answer_is_sent_back_twice_and_goes_on(executor, model, context, prompts):
    for text in ("bad", "worse", "good"):
        model.reply(text, when="Write")
    model.reply("Published.", when="Publish")

    def grade(context):
        context.append("drafts", context.get("draft"))
        if context.get("draft") == "good":
            return AgentNext("Publisher", grading_passed=True)
        return AgentNext("Writer", grading_passed=False)

    agents = [
        Agent("Writer", AgentType.COMPLETION, template="Write.", handler=TextHandler("draft"), next="Grader"),
        Agent("Grader", AgentType.PROCESSING_ONLY, choose_next=grade),
        Agent("Publisher", AgentType.COMPLETION, template="Publish: {{draft}}"),
    ]
    (result,) = await executor.walk("Writer", context(*agents))
    assert result.graph_text() == (
        "M, Writer, ○, Grader, ✗, →, M, Writer, ○, Grader, ✗, →, M, Writer, ○, Grader, ✓, →, M, Publisher"
    )
    assert prompts() == [*[[("user", "Write.")]] * 3, [("user", "Publish: good")]]
    assert result.get_all("drafts") == ["bad", "worse", "good"]


async def test_a_grade_at_the_end_is_marked(executor, context):
    agent = Agent("Grader", AgentType.PROCESSING_ONLY, choose_next=lambda context: AgentNext(None, True))
    (result,) = await executor.walk("Grader", context(agent))
    assert result.graph_text() == "○, Grader, ✓"


async def test_a_loop_is_stopped_by_max_steps(client, model, context):
    model.reply(times=None)
    ping = Agent("Ping", AgentType.COMPLETION, template="x", next="Pong")
    pong = Agent("Pong", AgentType.COMPLETION, template="x", next="Ping")
    with pytest.raises(FlowError, match="stopped after 5 steps") as caught:
        await FlowExecutor(client, max_steps=5).walk("Ping", context(ping, pong))
    assert len(model.requests) == 5
    assert isinstance(caught.value, StepLimitError)
    (result,) = caught.value.contexts
    assert [step.agent for step in result.trace] == ["Ping", "Pong", "Ping", "Pong", "Ping"]
    assert "Agent 'Pong'" in str(result.error)


async def test_a_flow_of_just_max_steps_ends_well(client, model, context):
    model.reply(times=2)
    ping = Agent("Ping", AgentType.COMPLETION, template="x", next="Pong")
    pong = Agent("Pong", AgentType.COMPLETION, template="x")
    (result,) = await FlowExecutor(client, max_steps=2).walk("Ping", context(ping, pong))
    assert result.error is None


async def test_a_loop_in_one_branch_leaves_the_others_alone(client, model, context):
    model.reply(times=None)

    def choose(context):
        return "Loop" if context.get("item") == "b" else AgentNext.END

    split = Agent("Split", AgentType.COMPLETION, template="[[item]]", choose_next=choose)
    loop = Agent("Loop", AgentType.PROCESSING_ONLY, next="Loop")
    with pytest.raises(StepLimitError) as caught:
        await FlowExecutor(client).walk("Split", context(split, loop, item=["a", "b", "c"]))
    assert [(c.get("item"), c.error is None) for c in caught.value.contexts] == [
        ("a", True),
        ("c", True),
        ("b", False),
    ]
