"""Agents as values and as base classes."""

import dataclasses

import pytest

from lmclient.flows import Agent, AgentContext, AgentNext, AgentType, FlowExecutor, TextHandler


class Poet(Agent):
    """Everything overridden, half of it async."""

    name = "Poet"
    category = "l"
    handler = TextHandler("poem")

    async def agent_type(self, context):
        return AgentType.COMPLETION

    async def system_prompt(self, context):
        return f"Write about {context.get('topic')}."

    def template(self, context):
        return "In {{style}} style."

    def pre_process(self, context):
        context.set("style", "plain")

    async def post_process(self, context):
        context.set("length", len(context.get("poem")))

    async def choose_next(self, context):
        return AgentNext("Critic")


async def test_a_subclass_overrides_fields_and_hooks(executor, model, context, prompts):
    model.reply("Rain.")
    model.reply("Nice.")
    critic = Agent("Critic", AgentType.COMPLETION, template="{{poem}}, {{length}}")
    (result,) = await executor.walk("Poet", context(Poet(), critic, topic="rain"))
    assert prompts() == [
        [("system", "Write about rain."), ("user", "In plain style.")],
        [("user", "Rain., 5")],
    ]
    assert result.graph_text() == "L, Poet, →, M, Critic"


async def test_methods_choose_handler_profile_and_tools(executor, model, context):
    def look() -> int:
        """Looks."""
        return 1

    class Own(Agent):
        def response_handler(self, context):
            return TextHandler("own")

        async def model_profile(self, context):
            return "scripted"

        def tool_definitions(self, context):
            return [look]

    model.reply("Done.")
    (result,) = await executor.walk("A", context(Own("A", AgentType.COMPLETION, template="x")))
    assert result.get("own") == "Done."
    assert result.graph_text() == "scripted, A"
    assert [tool.name for tool in model.requests[0].options.tools] == ["look"]


async def test_hooks_are_given_as_functions(executor, model, context):
    async def before(context):
        context.set("x", "1")

    model.reply("Done.")
    agent = Agent(
        "A",
        lambda context: AgentType.COMPLETION,
        template="{{x}}",
        pre_process=before,
        post_process=lambda context: context.set("y", context.get("response")),
        choose_next=lambda context: None,
    )
    (result,) = await executor.walk("A", context(agent))
    assert result.get("y") == "Done."


def test_an_agent_is_a_dataclass_that_can_be_replaced():
    def hook(context):
        return None

    agent = Agent("A", AgentType.COMPLETION, pre_process=hook)
    other = dataclasses.replace(agent, name="B", category="l")
    assert (other.name, other.category, other.pre_process) == ("B", "l", hook)


def test_a_dataclass_may_extend_an_agent():
    @dataclasses.dataclass(eq=False)
    class Tuned(Agent):
        temperature: float = dataclasses.field(default=0.5, kw_only=True)

        def choose_next(self, context):
            return "B"

    agent = Tuned("A", AgentType.COMPLETION, temperature=1.0)
    assert (agent.temperature, agent.choose_next(AgentContext())) == (1.0, "B")


def test_a_given_value_counts_more_than_that_of_the_class():
    assert (Poet(category="xl").category, Poet(name="Bard").name) == ("xl", "Bard")


def test_hooks_can_be_called_on_the_base_class():
    class Careful(Agent):
        def pre_process(self, context):
            return super().pre_process(context)

    assert Careful("A", AgentType.COMPLETION).pre_process(AgentContext()) is None


@pytest.mark.parametrize("end", [AgentNext.END, AgentNext(None), None])
async def test_the_ways_to_end(client, model, context, end):
    model.reply("Done.")
    agent = Agent("A", AgentType.COMPLETION, template="x", choose_next=lambda context: end)
    (result,) = await FlowExecutor(client).walk("A", context(agent))
    assert result.error is None


async def test_a_walk_leaves_its_agents_as_they_were(executor, model, context):
    model.reply("Done.")
    agent = Agent("A", AgentType.COMPLETION, template="x", handler=TextHandler("t"))
    before = dict(agent.__dict__)
    await executor.walk("A", context(agent))
    assert agent.__dict__ == before
