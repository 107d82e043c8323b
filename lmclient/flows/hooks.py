"""The boundary to the code of agents: whatever it raises becomes an error that names the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from lmclient.errors import FlowError, LMClientError
from lmclient.flows.agent import Agent, AgentType, resolved
from lmclient.flows.context import AgentContext


async def call_hook(agent: Agent, name: str, hook: Callable[..., Any], *arguments: Any) -> Any:
    """What the agent's hook gives. Raises `FlowError` naming the agent for all that it raises."""
    try:
        return await resolved(hook(*arguments))
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise FlowError(f"Agent {agent.name!r}: {name} was cancelled from within.") from error
    except Exception as error:  # it is the user's code, which may raise anything
        raise FlowError(f"Agent {agent.name!r}: {name} failed: {described(error)}") from error


async def agent_type_of(agent: Agent, context: AgentContext) -> AgentType:
    """The agent's type. Raises `FlowError` naming the agent if it is none."""
    kind = await call_hook(agent, "type", agent.agent_type, context)
    try:
        return AgentType(kind)
    except ValueError:
        raise FlowError(f"Agent {agent.name!r}: its type is {kind!r:.80}, not an AgentType.") from None


def described(error: Exception) -> str:
    """An error in one line; our own speak for themselves."""
    return str(error) if isinstance(error, LMClientError) else f"{type(error).__name__}: {error}"


def is_cancelled() -> bool:
    """Whether somebody cancels the running task; else a `CancelledError` comes from within."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
