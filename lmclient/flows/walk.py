"""A walk: from step to step, and from one context to many."""

from __future__ import annotations

import asyncio

from lmclient.errors import FlowError
from lmclient.flows import graph
from lmclient.flows.agent import Agent, AgentNext, AgentType
from lmclient.flows.context import AgentContext
from lmclient.flows.conversing import append_answer, goes_on
from lmclient.flows.events import Failed
from lmclient.flows.hooks import agent_type_of, call_hook
from lmclient.flows.pacing import turn
from lmclient.flows.step import run_step
from lmclient.flows.walk_state import WalkState


async def walk_on(walk: WalkState, agent: Agent, context: AgentContext, steps: int = 0) -> list[AgentContext]:
    """The final contexts of the walk that goes on with this agent, after `steps` steps on its way."""
    while True:
        if steps >= walk.max_steps:
            walk.stopped_by_limit = True
            await _fail(walk, agent, context, f"not run, after {steps} steps on the way there (max_steps)")
            return [context]
        contexts = await run_step(walk, agent, context)
        steps += 1
        if len(contexts) != 1:
            return await _walk_on_all(walk, agent, contexts, steps)
        context = contexts[0]
        following = await _next_agent(walk, agent, context)
        if following is None:
            return [context]
        agent = following


async def _walk_on_all(
    walk: WalkState, agent: Agent, contexts: list[AgentContext], steps: int
) -> list[AgentContext]:
    """Walks on from many contexts at once; the results are in their order."""

    async def go(context: AgentContext) -> list[AgentContext]:
        following = await _next_agent(walk, agent, context)
        return [context] if following is None else await walk_on(walk, following, context, steps)

    tasks = []
    async with asyncio.TaskGroup() as group:
        for context in contexts:
            await turn()
            tasks.append(group.create_task(go(context)))
    return [result for task in tasks for result in task.result()]


async def _next_agent(walk: WalkState, agent: Agent, context: AgentContext) -> Agent | None:
    """The agent that goes on with the context, None at the end of its way. Adds the marks."""
    if context.error is not None:
        return None
    try:
        chosen = await call_hook(agent, "choose_next", agent.next_agent, context)
        following = _named(agent, context, chosen)
        if following is not None:
            await _hand_over(context, following)
        return following
    except FlowError as error:
        context.fail(error)
        if context.parents == (context.trace[-1].id,):  # not after a merge: no branch is to blame
            context.trace[-1].error = str(error)
        await walk.emit(Failed, agent=agent.name, context=context, error=error)
        return None


def _named(agent: Agent, context: AgentContext, chosen: object) -> Agent | None:
    """The agent that was chosen. Raises `FlowError` if there is none of that name."""
    if not isinstance(chosen, AgentNext):
        if chosen is not None and not isinstance(chosen, str):
            raise FlowError(
                f"Agent {agent.name!r}: choose_next gave {chosen!r:.80}, not an AgentNext or a name."
            )
        chosen = AgentNext(chosen)
    if chosen.grading_passed is not None:
        context.graph.append(graph.PASSED if chosen.grading_passed else graph.FAILED)
    if chosen.name is None:
        return None
    following = context.agents.get(chosen.name)
    if following is None:
        context.graph.append(graph.GAVE_UP)
        raise FlowError(
            f"Agent {agent.name!r} goes on with {chosen.name!r}, but there is no such agent; "
            f"there are {', '.join(map(repr, context.agents)) or 'none'}."
        )
    return following


async def _hand_over(context: AgentContext, following: Agent) -> None:
    kind = await agent_type_of(following, context)
    if kind is AgentType.PROCESSING_ONLY:
        return
    if kind is AgentType.COMPLETION:
        context.graph.append(graph.STATELESS)
    elif goes_on(context, kind):
        context.graph.append(graph.GOES_ON)
        append_answer(context)
    else:
        context.graph.append(graph.STARTS)


async def _fail(walk: WalkState, agent: Agent, context: AgentContext, reason: str) -> None:
    error = FlowError(f"Agent {agent.name!r}: {reason}.")
    context.fail(error)
    await walk.emit(Failed, agent=agent.name, context=context, error=error)
