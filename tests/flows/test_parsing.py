"""Answers that cannot be used: asked again once, and started over where the agent wants it."""

import pytest

from lmclient import FlowError, Role, ToolCall
from lmclient.flows import Agent, AgentType, ErrorType, Handler, ToolCallingHandler


class Number(Handler):
    """Wants a number."""

    made = 0

    def __init__(self):
        type(self).made += 1

    def fresh(self):
        return type(self)()

    def handle(self, completion, context):
        context.set("number", int(completion.text))
        return True

    def retry_message(self, error):
        return "A number, please."


class Refusing(Number):
    """Says no instead of raising."""

    def handle(self, completion, context):
        return completion.text.isdigit()


def agent(**fields):
    return Agent("Counter", AgentType.COMPLETION, **{"template": "How many?", "handler": Number(), **fields})


ASKED = ("user", "How many?")
AGAIN = ("user", "A number, please.")


@pytest.mark.parametrize("handler", [Number(), Number, lambda: Number(), Refusing()])
async def test_a_wrong_answer_is_asked_for_again(executor, model, context, prompts, handler):
    model.reply("Many!")
    model.reply("7")
    (result,) = await executor.walk("Counter", context(agent(handler=handler)))
    assert prompts() == [[ASKED], [ASKED, ("assistant", "Many!"), AGAIN]]
    assert [request.skip_cache for request in model.requests] == [False, True]
    assert result.error is None
    assert result.graph_text() == "M, Counter, ⚠"
    assert (result.trace[0].calls, result.statistics.requests) == (2, 2)


async def test_every_attempt_gets_a_fresh_handler(executor, model, context):
    model.reply("Many!")
    model.reply("7")
    started = context(agent())
    Number.made = 0
    await executor.walk("Counter", started)
    assert Number.made == 2


async def test_two_wrong_answers_are_an_error_of_the_context(executor, model, context, prompts):
    model.reply("Many!")
    model.reply("Lots!")
    (result,) = await executor.walk("Counter", context(agent(next="Counter")))
    assert len(prompts()) == 2
    assert result.error_type is ErrorType.PARSING
    assert isinstance(result.error, FlowError)
    assert "'Counter'" in str(result.error)
    assert "Lots!" in str(result.error)
    assert isinstance(result.error.__cause__, ValueError)
    assert result.graph_text() == "M, Counter, ⚠, ⚠, ☢"
    assert result.trace[0].error == str(result.error)


async def test_starting_over_forgets_the_wrong_answers(executor, model, context, prompts):
    for text in ("Many!", "Lots!", "7"):
        model.reply(text)
    (result,) = await executor.walk("Counter", context(agent(retry_on_parsing_error=lambda context: True)))
    assert prompts()[2] == [ASKED]
    assert model.requests[2].skip_cache
    assert (result.error, result.error_type, result.get("number")) == (None, None, 7)
    assert result.graph_text() == "M, Counter, ⚠, ⚠"


async def test_starting_over_ends_after_three_times(executor, model, context):
    model.reply("Many!", times=None)
    (result,) = await executor.walk("Counter", context(agent(retry_on_parsing_error=True)))
    assert len(model.requests) == 8
    assert result.graph_text() == "M, Counter, " + "⚠, " * 8 + "☢"


async def test_the_error_can_be_looked_at_before_starting_over(executor, model, context):
    model.reply("Many!", times=2)
    seen = []

    async def decide(context):
        seen.append((context.error_type, context.last_completion.text))
        return False

    await executor.walk("Counter", context(agent(retry_on_parsing_error=decide)))
    assert seen == [(ErrorType.PARSING, "Many!")]


async def test_starting_over_gives_fresh_tool_rounds(executor, model, context):
    def look() -> int:
        """Looks."""
        return 1

    model.reply("", tool_calls=[ToolCall("c", "look", {})])
    model.reply("Many!", times=2)
    model.reply("", tool_calls=[ToolCall("c", "look", {})])
    model.reply("7")
    handler = ToolCallingHandler(Number(), [look])
    (result,) = await executor.walk(
        "Counter", context(agent(handler=handler, max_tool_rounds=1, retry_on_parsing_error=True))
    )
    assert result.get("number") == 7
    assert result.graph_text() == "M, Counter, 🔧, ⚠, ⚠, 🔧"


async def test_calls_that_nobody_runs_are_closed_before_asking_again(executor, model, context):
    model.reply("", tool_calls=[ToolCall("c", "look", {})])
    model.reply("7")
    await executor.walk("Counter", context(agent()))
    turns = model.requests[1].conversation.turns
    assert [turn.role for turn in turns] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]


async def test_an_empty_answer_is_not_put_into_the_history(executor, model, context, prompts):
    model.reply("")
    model.reply("7")
    await executor.walk("Counter", context(agent()))
    assert prompts()[1] == [("user", "How many?\nA number, please.")]


@pytest.mark.parametrize("said", [None, "yes", 1, [True]])
async def test_a_handler_that_returns_nonsense_is_an_error(executor, model, context, said):
    class Odd(Handler):
        def handle(self, completion, context):
            return said

    model.reply("7", times=2)
    (result,) = await executor.walk("Counter", context(agent(handler=Odd())))
    assert result.error_type is ErrorType.GENERAL
    assert "'Counter': Odd.handle" in str(result.error)


async def test_a_handler_that_is_none_is_an_error(executor, model, context):
    (result,) = await executor.walk("Counter", context(agent(handler=lambda: "text")))
    assert "'Counter': its handler is 'text'" in str(result.error)
    assert model.requests == []


async def test_an_async_handler_is_awaited(executor, model, context):
    class Slow(Handler):
        async def handle(self, completion, context):
            context.set("said", completion.text)
            return True

    model.reply("7")
    (result,) = await executor.walk("Counter", context(agent(handler=Slow())))
    assert result.get("said") == "7"


class Alone:
    """A handler of no base class, which cannot use its first answer."""

    def __init__(self):
        self.handled = 0

    def handle(self, completion, context):
        self.handled += 1
        context.set("handled", self.handled)
        return completion.text == "7"


@pytest.mark.parametrize("handler", [Alone(), Alone, ToolCallingHandler(Alone(), [])])
async def test_an_object_with_the_method_handle_is_a_handler(executor, model, context, handler):
    model.reply("seven")
    model.reply("7")
    (result,) = await executor.walk("Counter", context(agent(handler=handler)))
    assert (result.error, result.get("handled")) == (None, 1)
    assert result.graph_text() == "M, Counter, ⚠"


def test_a_delegate_without_the_method_handle_is_refused():
    with pytest.raises(TypeError, match="no handler"):
        ToolCallingHandler("text", [])
