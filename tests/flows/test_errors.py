"""Bad input: each a clear error that names the agent, on its context only."""

import asyncio

import pytest

from lmclient import FlowError
from lmclient.flows import Agent, AgentContext, AgentNext, AgentType, ErrorType, FlowExecutor


def branching(**fields):
    return Agent("Splitter", AgentType.COMPLETION, **{"template": "[[item]]", **fields})


async def walk(executor, model, *agents, **values):
    model.reply("ok", times=None)
    context = AgentContext(agents)
    context.set_all("item", ["a", "b", "c"])
    for key, value in values.items():
        context.set(key, value)
    return await executor.walk(agents[0].name, context)


def raising(item):
    def hook(context):
        if context.get("item") == item:
            raise ValueError("boom")

    return hook


async def test_an_exception_before_the_step_ends_it(executor, model):
    (result,) = await walk(executor, model, branching(pre_process=raising("a")))
    assert (result.error_type, result.graph) == (ErrorType.GENERAL, [])
    assert str(result.error) == "Agent 'Splitter': pre_process failed: ValueError: boom"
    assert isinstance(result.error.__cause__, ValueError)
    assert model.requests == []


async def test_a_missing_key_names_key_and_agent(executor, model):
    (result,) = await walk(executor, model, branching(template="{{gone}}"))
    assert "'Splitter'" in str(result.error)
    assert "'gone'" in str(result.error)
    assert result.error_type is ErrorType.GENERAL


@pytest.mark.parametrize("hook", ["post_process", "choose_next"])
async def test_a_hook_that_raises_fails_its_branch_only(executor, model, hook):
    results = await walk(executor, model, branching(**{hook: raising("b")}))
    assert [r.get("item") for r in results] == ["a", "c", "b"]
    assert str(results[2].error) == f"Agent 'Splitter': {hook} failed: ValueError: boom"
    assert [r.error for r in results[:2]] == [None, None]


async def test_a_next_agent_that_does_not_exist_fails_its_branch_only(executor, model):
    def choose(context):
        return AgentNext("Nobody" if context.get("item") == "b" else None)

    results = await walk(executor, model, branching(choose_next=choose))
    assert [r.error is None for r in results] == [True, True, False]
    assert results[2].graph_text() == "⇉ 2/3, M, Splitter, ☢"
    assert "'Splitter' goes on with 'Nobody', but there is no such agent" in str(results[2].error)


async def test_a_next_agent_of_another_kind_is_an_error(executor, model):
    results = await walk(executor, model, branching(choose_next=lambda context: 5))
    assert "'Splitter': choose_next gave 5" in str(results[0].error)


async def test_a_first_agent_that_does_not_exist_is_refused(executor, model):
    with pytest.raises(FlowError, match=r"no agent 'Nobody'.*'Splitter'"):
        await executor.walk("Nobody", AgentContext([branching()]))


def test_two_agents_with_one_name_are_refused():
    with pytest.raises(FlowError, match="Two agents of the flow are named 'Splitter'"):
        AgentContext([branching(), branching()])


async def test_a_merge_that_returns_a_context_twice_fails_that_context(executor, model):
    results = await walk(
        executor, model, branching(merge=lambda contexts: [contexts[0], contexts[0], contexts[1]])
    )
    assert [r.get("item") for r in results] == ["b", "a"]
    assert str(results[1].error) == "Agent 'Splitter': its merge returned the same context twice."
    assert results[0].graph[-1] == "3↣3"


@pytest.mark.parametrize(
    "merge", [lambda contexts: "all", lambda contexts: ["a"], lambda contexts: contexts[0]]
)
async def test_a_merge_that_returns_nonsense_fails_its_contexts(executor, model, merge):
    results = await walk(executor, model, branching(merge=merge))
    assert len(results) == 3
    assert all("'Splitter': its merge gave" in str(r.error) for r in results)


async def test_a_merge_that_raises_fails_its_contexts(executor, model):
    def merge(contexts):
        raise KeyError("gone")

    results = await walk(executor, model, branching(merge=merge))
    assert {str(r.error) for r in results} == {"Agent 'Splitter': merge failed: KeyError: 'gone'"}


async def test_a_merge_to_nothing_has_no_results(executor, model):
    assert await walk(executor, model, branching(merge=lambda contexts: [])) == []


@pytest.mark.parametrize("kind", ["CHAT", 7, lambda context: "CHAT"])
async def test_a_wrong_type_names_the_agent(executor, model, kind):
    (result,) = await walk(executor, model, Agent("Odd", kind, template="x"))
    assert "Agent 'Odd': its type is" in str(result.error)


async def test_a_function_of_the_context_that_raises_names_the_agent(executor, model):
    def category(context):
        raise LookupError("no idea")

    (result,) = await walk(
        executor, model, Agent("Odd", AgentType.COMPLETION, category=category, template="x")
    )
    assert str(result.error) == "Agent 'Odd': LookupError: no idea"


async def test_an_unknown_category_is_an_error_of_the_context(executor, model):
    (result,) = await walk(executor, model, Agent("Odd", AgentType.COMPLETION, category="huge", template="x"))
    assert "'huge'" in str(result.error)
    assert any("'Odd'" in note for note in result.error.__notes__)


async def test_a_cancellation_from_within_is_an_error_of_its_branch(executor, model):
    async def give_up(context):
        if context.get("item") == "b":
            raise asyncio.CancelledError

    results = await walk(executor, model, branching(post_process=give_up))
    assert [r.get("item") for r in results] == ["a", "c", "b"]
    assert "post_process was cancelled from within" in str(results[2].error)


async def test_an_error_is_forgotten_by_the_next_walk(executor, model):
    agent = Agent("Once", AgentType.COMPLETION, template="{{x}}")
    (result,) = await walk(executor, model, agent)
    assert result.error is not None
    result.set("x", "here")
    (result,) = await executor.walk("Once", result)
    assert (result.error, result.error_type) == (None, None)


@pytest.mark.parametrize("fields", [{"name": ""}, {"name": None}, {"type": None}])
def test_an_agent_needs_a_name_and_a_type(fields):
    with pytest.raises(FlowError, match="needs a"):
        Agent(**{"name": "A", "type": AgentType.COMPLETION, **fields})


@pytest.mark.parametrize("bounds", [{"max_concurrency": 0}, {"max_steps": 0}])
async def test_bounds_below_one_are_refused(client, bounds):
    with pytest.raises(FlowError, match="at least 1"):
        FlowExecutor(client, **bounds)
