"""What `FlowExecutor.stream` yields: a class for each kind of event, whose `type` is its name."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from lmclient.core.completion import Chunk
from lmclient.core.tools import ToolCall, ToolResult
from lmclient.flows.context import AgentContext


class StepStarted(msgspec.Struct, frozen=True, kw_only=True):
    """An agent begins its step on a context; it may branch."""

    type: ClassVar[Literal["step_started"]] = "step_started"
    agent: str
    context: AgentContext


class BranchStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of a step begins: `number`, from 1, of `count`. `origin` is the context that branched."""

    type: ClassVar[Literal["branch"]] = "branch"
    agent: str
    origin: AgentContext
    context: AgentContext
    number: int
    count: int


class ChunkReceived(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer has arrived and was handled."""

    type: ClassVar[Literal["chunk"]] = "chunk"
    agent: str
    context: AgentContext
    chunk: Chunk


class ToolCalled(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model called has its result."""

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    agent: str
    context: AgentContext
    call: ToolCall
    result: ToolResult


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The contexts of `count` branches became `contexts`."""

    type: ClassVar[Literal["merged"]] = "merged"
    agent: str
    count: int
    contexts: tuple[AgentContext, ...]


class StepFinished(msgspec.Struct, frozen=True, kw_only=True):
    """A step is over: what became of its context `origin`, errored ones included."""

    type: ClassVar[Literal["step_finished"]] = "step_finished"
    agent: str
    origin: AgentContext
    contexts: tuple[AgentContext, ...]


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A context cannot go on; the others do."""

    type: ClassVar[Literal["error"]] = "error"
    agent: str
    context: AgentContext
    error: Exception


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The walk is over: what `walk` would have returned."""

    type: ClassVar[Literal["finished"]] = "finished"
    contexts: tuple[AgentContext, ...]


FlowEvent = (
    StepStarted | BranchStarted | ChunkReceived | ToolCalled | Merged | StepFinished | Failed | Finished
)
