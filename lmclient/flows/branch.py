"""One branch of a step: the call, the reading of its answer, and `post_process`."""

from __future__ import annotations

import asyncio
import datetime
import time
from typing import Any

from lmclient.core.conversation import Conversation
from lmclient.errors import FlowError, LMClientError
from lmclient.flows import graph
from lmclient.flows.agent import Agent, AgentType, resolved
from lmclient.flows.calling import Caller
from lmclient.flows.context import AgentContext, ErrorType, SkipCompletion
from lmclient.flows.conversing import ask_again, set_up
from lmclient.flows.hooks import call_hook, described, is_cancelled
from lmclient.flows.trace import TraceStep
from lmclient.flows.walk_state import WalkState

ATTEMPTS = 2
"""How often an answer is asked for before the agent gives up or starts over."""


class ParsingError(FlowError):
    """An answer could not be used."""


async def run_branch(
    walk: WalkState,
    agent: Agent,
    context: AgentContext,
    *,
    kind: AgentType,
    skip: SkipCompletion,
    text: str,
    branch: tuple[int, int] | None,
) -> None:
    """Runs the agent on the context of one branch. Whatever goes wrong is kept on the context."""
    step = begin(walk, agent, context, branch)
    began = time.perf_counter()
    try:
        async with walk.slot:
            if kind is AgentType.PROCESSING_ONLY or skip is not SkipCompletion.NO_SKIP:
                context.graph += (graph.SKIPPED, agent.name)
                if kind is not AgentType.PROCESSING_ONLY and skip is not SkipCompletion.SKIP:
                    set_up(context, kind, await resolved(agent.system_prompt, context), text)
            else:
                await _ask(walk, agent, context, step, kind, text)
            await call_hook(agent, "post_process", agent.post_process, context)
    except ParsingError as error:
        context.fail(error, ErrorType.PARSING)
    except LMClientError as error:
        context.fail(error)
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        context.fail(_wrapped(agent, "a call was cancelled from within", error))
    except Exception as error:  # the boundary to handlers and other code of users
        context.fail(_wrapped(agent, described(error), error))
    finally:
        step.duration = time.perf_counter() - began
    if context.error is not None:
        step.error = described(context.error)


def begin(
    walk: WalkState, agent: Agent, context: AgentContext, branch: tuple[int, int] | None = None
) -> TraceStep:
    """Adds the agent to the context's trace."""
    step = TraceStep(
        id=walk.new_id(),
        agent=agent.name,
        parents=context.parents,
        branch=branch,
        started=datetime.datetime.now(datetime.UTC),
    )
    context.trace.append(step)
    context.parents = (step.id,)
    return step


async def _ask(
    walk: WalkState, agent: Agent, context: AgentContext, step: TraceStep, kind: AgentType, text: str
) -> None:
    target, mark = await _target(agent, context, step)
    context.graph += (mark, agent.name)
    system = await resolved(agent.system_prompt, context)
    conversation = set_up(context, kind, system, text)
    if not conversation.turns:
        raise FlowError(f"Agent {agent.name!r} has nothing to send: no template, prompt or conversation.")
    caller = Caller(walk, agent, context, step, target)
    before = conversation.copy()
    restarts_left = agent.max_restarts
    while (error := await _answer(agent, context, caller)) is not None:
        context.fail(error, ErrorType.PARSING)
        if restarts_left <= 0 or not await _starts_over(agent, context):
            context.graph.append(graph.GAVE_UP)
            raise error
        restarts_left -= 1
        context.error = context.error_type = None
        context.conversation = before.copy()
        caller.rounds_left = agent.max_tool_rounds


async def _target(agent: Agent, context: AgentContext, step: TraceStep) -> tuple[Any, str]:
    """What to call: the agent's profile or else its category; and its mark."""
    profile = await resolved(agent.model_profile(context))
    if profile is None:
        category = str(await resolved(agent.model_category(context)))
        step.category = category
        return category, graph.category_mark(category)
    if isinstance(profile, str):
        step.profile = profile
        return profile, profile
    step.profile, step.category = profile.name, profile.category
    return profile, graph.category_mark(profile.category) if profile.category else profile.name


async def _starts_over(agent: Agent, context: AgentContext) -> bool:
    asked = agent.retry_on_parsing_error
    if callable(asked):
        asked = await call_hook(agent, "retry_on_parsing_error", asked, context)
    return bool(asked)


async def _answer(agent: Agent, context: AgentContext, caller: Caller) -> ParsingError | None:
    """Asks until an answer was read, at most `ATTEMPTS` times; returns why the last was not."""
    problem: Exception | None = None
    for attempt in range(ATTEMPTS):
        conversation = context.conversation or Conversation()
        completion, handler = await caller.answer(conversation)
        context.answer_pending = True
        try:
            read = await resolved(handler.handle(completion, context))
        except Exception as error:  # a handler may raise anything; it means that it cannot read this
            read, problem = False, error
        if not isinstance(read, bool):
            name = type(handler).__name__
            raise FlowError(f"Agent {agent.name!r}: {name}.handle gave {read!r:.80}, not True or False.")
        if read:
            return None
        context.graph.append(graph.NOT_PARSED)
        caller.skip_cache = True
        if attempt + 1 < ATTEMPTS:
            ask_again(conversation, completion, handler.retry_message(problem))
    reason = f": {described(problem)}" if problem is not None and str(problem) else ""
    failure = ParsingError(f"Agent {agent.name!r}: {ATTEMPTS} answers of the model could not be used{reason}")
    failure.__cause__ = problem
    failure.partial = context.last_completion
    return failure


def _wrapped(agent: Agent, reason: str, cause: BaseException) -> FlowError:
    error = FlowError(f"Agent {agent.name!r}: {reason}")
    error.__cause__ = cause
    return error
