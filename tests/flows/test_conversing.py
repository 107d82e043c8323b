"""What the model is sent, by the types of the agents."""

import pytest

from lmclient import AsyncClient, Conversation, FinishReason, Role, ToolCall
from lmclient.flows import Agent, AgentContext, AgentType, FlowExecutor, SkipCompletion, TextHandler

START = AgentType.START_CONVERSATION
START_WITH_SYSTEM = AgentType.START_CONVERSATION_WITH_SYSTEM_PROMPT
GO_ON = AgentType.CONVERSATION
GO_ON_WITH_SYSTEM = AgentType.CONVERSATION_WITH_SYSTEM_PROMPT


def first(**fields):
    default = {"template": "Hello {{name}}.", "system_prompt": "Be kind.", "next": "Second"}
    return Agent("First", START, **{**default, **fields})


async def test_a_linear_flow_of_stateless_agents(executor, model, context, prompts):
    model.reply("It is a parser.")
    model.reply("Parsers rock.")
    summarize = Agent(
        "Summarizer",
        AgentType.COMPLETION,
        system_prompt="Summarize.",
        template="Code: {{code}}",
        handler=TextHandler("summary"),
        next="Writer",
    )
    write = Agent("Writer", AgentType.COMPLETION, template="Announce: {{summary}}")
    (result,) = await executor.walk("Summarizer", context(summarize, write, code="x = 1"))
    assert prompts() == [
        [("system", "Summarize."), ("user", "Code: x = 1")],
        [("user", "Announce: It is a parser.")],
    ]
    assert result.graph_text() == "M, Summarizer, →, M, Writer"
    assert [(step.agent, step.parent) for step in result.trace] == [("Summarizer", None), ("Writer", 1)]
    assert result.get("response") == "Parsers rock."


@pytest.mark.parametrize("kind", [k for k in AgentType if k is not AgentType.PROCESSING_ONLY])
async def test_the_first_prompt_has_a_system_turn(executor, model, context, prompts, kind):
    model.reply("Hi.")
    agent = Agent("Only", kind, system_prompt="Be kind.", template="Hello.")
    await executor.walk("Only", context(agent))
    assert prompts() == [[("system", "Be kind."), ("user", "Hello.")]]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (START, [("user", "Be brief.\nGo on.")]),
        (START_WITH_SYSTEM, [("system", "Be brief."), ("user", "Go on.")]),
        (AgentType.COMPLETION, [("system", "Be brief."), ("user", "Go on.")]),
        (GO_ON, [("user", "Be kind.\nHello Ada."), ("assistant", "Hi."), ("user", "Go on.")]),
        (
            GO_ON_WITH_SYSTEM,
            [("system", "Be kind."), ("user", "Hello Ada."), ("assistant", "Hi."), ("user", "Go on.")],
        ),
    ],
)
async def test_the_second_prompt_depends_on_the_type(executor, model, context, prompts, kind, expected):
    model.reply("Hi.")
    model.reply("Fine.")
    second = Agent("Second", kind, system_prompt="Be brief.", template="Go on.")
    await executor.walk("First", context(first(), second, name="Ada"))
    assert prompts()[1] == expected


@pytest.mark.parametrize(
    ("kind", "mark"),
    [
        (START, "🗨"),
        (START_WITH_SYSTEM, "🗨"),
        (AgentType.COMPLETION, "→"),
        (GO_ON, "↴"),
        (GO_ON_WITH_SYSTEM, "↴"),
    ],
)
async def test_the_mark_between_two_agents(executor, model, context, kind, mark):
    model.reply(times=2)
    (result,) = await executor.walk(
        "First", context(first(), Agent("Second", kind, template="x"), name="Ada")
    )
    assert result.graph == ["M", "First", mark, "M", "Second"]


async def test_a_system_prompt_is_put_into_a_conversation_that_has_none(executor, model, context, prompts):
    model.reply("Hi.")
    model.reply("Fine.")
    second = Agent("Second", GO_ON_WITH_SYSTEM, system_prompt="Be brief.", template="Go on.")
    await executor.walk("First", context(first(system_prompt=None), second, name="Ada"))
    assert prompts()[1][:2] == [("system", "Be brief."), ("user", "Hello Ada.")]


async def test_text_is_appended_to_a_user_turn_that_waits(executor, model, context, prompts):
    model.reply("Done.")

    def skip(context: AgentContext) -> None:
        context.skip_next_completion = SkipCompletion.SETUP_CONVERSATION_ONLY

    second = Agent("Second", GO_ON, template="And greet Bob.")
    (result,) = await executor.walk("First", context(first(pre_process=skip), second, name="Ada"))
    assert prompts() == [[("user", "Be kind.\nHello Ada.\nAnd greet Bob.")]]
    assert result.graph_text() == "○, First, ↴, M, Second"


async def test_a_skipped_agent_leaves_the_conversation_alone(executor, model, context, prompts):
    model.reply("Done.")

    def skip(context: AgentContext) -> None:
        context.skip_next_completion = SkipCompletion.SKIP

    second = Agent("Second", GO_ON, template="Greet Bob.")
    (result,) = await executor.walk("First", context(first(pre_process=skip), second, name="Ada"))
    assert prompts() == [[("user", "Greet Bob.")]]
    assert result.graph_text() == "○, First, 🗨, M, Second"
    assert result.skip_next_completion is SkipCompletion.NO_SKIP


async def test_an_answer_is_appended_once_across_a_processing_agent(executor, model, context, prompts):
    model.reply("Hi.")
    model.reply("Fine.")
    middle = Agent("Middle", AgentType.PROCESSING_ONLY, next="Last")
    last = Agent("Last", GO_ON, template="Go on.")
    (result,) = await executor.walk("First", context(first(next="Middle"), middle, last, name="Ada"))
    assert prompts()[1] == [("user", "Be kind.\nHello Ada."), ("assistant", "Hi."), ("user", "Go on.")]
    assert result.graph_text() == "M, First, ○, Middle, ↴, M, Last"


async def test_an_earlier_answer_is_not_appended_again_after_a_skipped_call(
    executor, model, context, prompts
):
    model.reply("Hi.")
    model.reply("Fine.")

    def skip(context: AgentContext) -> None:
        context.skip_next_completion = SkipCompletion.SETUP_CONVERSATION_ONLY

    second = Agent("Second", GO_ON, template="One.", pre_process=skip, next="Third")
    third = Agent("Third", GO_ON, template="Two.")
    await executor.walk("First", context(first(), second, third, name="Ada"))
    assert prompts()[1][1:] == [("assistant", "Hi."), ("user", "One.\nTwo.")]


async def test_the_answer_keeps_its_calls_and_open_ones_are_answered(executor, model, context):
    model.reply("", tool_calls=[ToolCall("c1", "look", {"at": "x"})])
    model.reply("Fine.")
    await executor.walk("First", context(first(), Agent("Second", GO_ON, template="Go on."), name="Ada"))
    turns = model.requests[1].conversation.turns
    assert [turn.role for turn in turns] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert turns[1].tool_calls[0].name == "look"
    assert (turns[2].tool_call_id, turns[2].is_error) == ("c1", True)


async def test_an_agent_without_template_sends_the_conversation_as_it_is(executor, model, context, prompts):
    model.reply("Hi.")
    started = context(Agent("Only", GO_ON))
    started.conversation = Conversation.create("Hello.")
    await executor.walk("Only", started)
    assert prompts() == [[("user", "Hello.")]]


async def test_nothing_to_send_is_an_error(executor, model, context):
    (result,) = await executor.walk("Only", context(Agent("Only", AgentType.COMPLETION)))
    assert "'Only' has nothing to send" in str(result.error)
    assert model.requests == []


@pytest.mark.parametrize(
    ("reason", "mark"),
    [(FinishReason.LENGTH, "⏹"), (FinishReason.CONTENT_FILTER, "⛔"), (FinishReason.ERROR, "❌")],
)
async def test_why_an_answer_stopped_stands_after_the_agent(executor, model, context, reason, mark):
    model.reply("Half an", finish_reason=reason)
    (result,) = await executor.walk("Only", context(Agent("Only", AgentType.COMPLETION, template="x")))
    assert result.graph == ["M", "Only", mark]
    assert result.trace[0].finish_reason is reason


async def test_a_walk_on_a_used_context_goes_on_with_its_conversation(executor, model, context, prompts):
    model.reply("Hi.")
    model.reply("Fine.")
    second = Agent("Second", GO_ON, template="Go on.")
    (result,) = await executor.walk("First", context(first(next=None), second, name="Ada"))
    (result,) = await executor.walk("Second", result)
    assert result.graph_text() == "M, First, ‖, M, Second"
    assert prompts()[1] == [("user", "Be kind.\nHello Ada."), ("assistant", "Hi."), ("user", "Go on.")]
    assert [(step.id, step.parent) for step in result.trace] == [(1, None), (2, 1)]
    assert result.statistics.requests == 2


async def test_categories_and_profiles_are_called_as_the_agents_say(executor, model, context):
    model.reply(times=4)
    agents = [
        Agent("A", AgentType.COMPLETION, category="xl", template="x", next="B"),
        Agent("B", AgentType.COMPLETION, category=lambda context: "hot", template="x", next="C"),
        Agent("C", AgentType.COMPLETION, profile="scripted", template="x", next="D"),
        Agent("D", AgentType.COMPLETION, profile=model.profile, template="x"),
    ]
    (result,) = await executor.walk("A", context(*agents))
    assert [request.category for request in model.requests] == ["xl", "hot", None, None]
    assert result.graph_text() == "XL, A, →, HOT, B, →, scripted, C, →, scripted, D"
    assert [(step.category, step.profile) for step in result.trace] == [
        ("xl", "scripted"),
        ("hot", "scripted"),
        (None, "scripted"),
        (None, "scripted"),
    ]


async def test_a_custom_category_stands_in_the_graph_as_it_is(model, context, tmp_path):
    model.reply()
    async with AsyncClient(model.settings(tmp_path, categories={"vision": "scripted"})) as client:
        agent = Agent("A", AgentType.COMPLETION, category="vision", template="x")
        (result,) = await FlowExecutor(client).walk("A", context(agent))
    assert result.graph_text() == "vision, A"
