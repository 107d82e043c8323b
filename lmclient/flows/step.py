"""One step of a walk: `pre_process`, the branches, their merge."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence

from lmclient.errors import FlowError, LMClientError
from lmclient.flows import graph
from lmclient.flows.agent import Agent, AgentType, resolved
from lmclient.flows.branch import begin, run_branch
from lmclient.flows.context import AgentContext, SkipCompletion
from lmclient.flows.events import BranchStarted, Failed, Merged, StepFinished, StepStarted
from lmclient.flows.hooks import agent_type_of, call_hook, described
from lmclient.flows.pacing import turn
from lmclient.flows.template import expand
from lmclient.flows.walk_state import WalkState


async def run_step(walk: WalkState, agent: Agent, context: AgentContext) -> list[AgentContext]:
    """The contexts that the agent makes of one: of its branches, merged or not, errored ones last."""
    await turn()
    await walk.emit(StepStarted, agent=agent.name, context=context)
    known = len(context.trace)
    try:
        branches = await _run_branches(walk, agent, context)
    except LMClientError as error:  # before any branch began
        context.fail(error)
        begin(walk, agent, context).error = described(error)
        branches = [context]
    good = [branch for branch in branches if branch.error is None]
    failed = [branch for branch in branches if branch.error is not None]
    if good:
        good, failed_merging = await _merge(walk, agent, branches, good, known)
        failed += failed_merging
    for branch in failed:
        await walk.emit(Failed, agent=agent.name, context=branch, error=branch.error)
    await walk.emit(StepFinished, agent=agent.name, origin=context, contexts=(*good, *failed))
    return good + failed


async def _run_branches(walk: WalkState, agent: Agent, context: AgentContext) -> list[AgentContext]:
    """Runs the branches of the agent on a context. Raises `FlowError` for what fails before."""
    context.error = context.error_type = None
    await call_hook(agent, "pre_process", agent.pre_process, context)
    skip, context.skip_next_completion = context.skip_next_completion, SkipCompletion.NO_SKIP
    kind = await agent_type_of(agent, context)
    template = await call_hook(agent, "template", resolved, agent.template, context) or ""
    with_text = kind is not AgentType.PROCESSING_ONLY and skip is not SkipCompletion.SKIP
    prompt = expand(template, context, agent.name, with_text=with_text)
    if not prompt.branched:
        await run_branch(walk, agent, context, kind=kind, skip=skip, text=prompt.texts[0], branch=None)
        return [context]
    count = len(prompt.texts)
    branches = []
    async with asyncio.TaskGroup() as group:
        for number, branch in enumerate(context.branches(count, prompt.columns), start=1):
            await turn()
            branches.append(branch)
            branch.graph.append(graph.branch_mark(number, count))
            await walk.emit(
                BranchStarted, agent=agent.name, origin=context, context=branch, number=number, count=count
            )
            text = prompt.texts[number - 1]
            group.create_task(
                run_branch(walk, agent, branch, kind=kind, skip=skip, text=text, branch=(number, count))
            )
    return branches


async def _merge(
    walk: WalkState,
    agent: Agent,
    branches: Sequence[AgentContext],
    good: Sequence[AgentContext],
    known: int,
) -> tuple[list[AgentContext], list[AgentContext]]:
    """The contexts that go on, and those that a wrong merge has made unusable.

    `known` is the length of the trace before the step.
    """
    try:
        merged = await call_hook(agent, "merge", agent.merge, list(good))
        if merged is None:
            return list(good), []
        contexts = _checked(agent, merged)
    except FlowError as error:
        for context in good:
            context.fail(error)
        return [], list(good)
    history = [*good[0].trace[:known], *itertools.chain(*(branch.trace[known:] for branch in branches))]
    parents = tuple(itertools.chain(*(branch.parents for branch in good)))
    unique = Counter(contexts)
    for context, times in unique.items():
        if context not in good:
            context.agents = context.agents or good[0].agents
            context.statistics = good[0].statistics
        context.graph.append(graph.merge_mark(len(good), len(contexts)))
        context.trace = history.copy()
        context.parents = parents
        if times > 1:
            context.fail(FlowError(f"Agent {agent.name!r}: its merge returned the same context twice."))
    await walk.emit(Merged, agent=agent.name, count=len(good), contexts=tuple(unique))
    return [c for c in unique if unique[c] == 1], [c for c in unique if unique[c] > 1]


def _checked(agent: Agent, merged: object) -> list[AgentContext]:
    if isinstance(merged, list | tuple) and all(isinstance(item, AgentContext) for item in merged):
        return list(merged)
    raise FlowError(f"Agent {agent.name!r}: its merge gave {merged!r:.80}, not a list of contexts.")
