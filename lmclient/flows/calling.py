"""The calls of one branch: prompts go out, answers and tool rounds come back into its context."""

from __future__ import annotations

import inspect
import time
from typing import Any

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.conversation import Conversation
from lmclient.core.tools import Tool
from lmclient.errors import FlowError, LMClientError
from lmclient.flows import graph
from lmclient.flows.agent import Agent, fresh_handler, resolved
from lmclient.flows.context import AgentContext
from lmclient.flows.events import ChunkReceived, ToolCalled
from lmclient.flows.handler import Handler
from lmclient.flows.tool_rounds import Functions, run_calls, tools_and_functions
from lmclient.flows.trace import TraceStep
from lmclient.flows.walk_state import WalkState


class Caller:
    """Makes the calls of one branch, until its step is over."""

    def __init__(
        self, walk: WalkState, agent: Agent, context: AgentContext, step: TraceStep, target: Any
    ) -> None:
        self._walk = walk
        self._agent = agent
        self._context = context
        self._step = step
        self._target = target
        self.skip_cache = context.skip_cache or context.always_skip_cache
        self.rounds_left = agent.max_tool_rounds
        context.skip_cache = False

    async def answer(self, conversation: Conversation) -> tuple[Completion, Handler]:
        """The model's answer, after as many tool rounds as it takes, and the handler to read it with.

        Raises what the client raises.
        """
        handler = await fresh_handler(self._agent, self._context)
        tools, functions = await self._tools(handler)
        choice = self._agent.tool_choice
        completion = await self._call(conversation, handler, tools, choice)
        while functions and completion.finish_reason is FinishReason.TOOL_CALLS and self.rounds_left > 0:
            self.rounds_left -= 1
            await self._run_tools(conversation, completion, functions)
            # A choice that forces a call would force one for ever.
            choice = choice if choice == "none" else "auto"
            # What the last handler saw of a stream is no part of this answer.
            handler = await fresh_handler(self._agent, self._context)
            completion = await self._call(conversation, handler, tools, choice)
        return completion, handler

    async def _tools(self, handler: Handler) -> tuple[list[Tool], Functions]:
        given = await resolved(self._agent.tool_definitions(self._context))
        try:
            return tools_and_functions(given or (), handler.tool_functions)
        except TypeError as error:
            raise FlowError(f"Agent {self._agent.name!r}: {error}") from error

    async def _run_tools(
        self, conversation: Conversation, completion: Completion, functions: Functions
    ) -> None:
        results = await run_calls(functions, completion)
        conversation.add_tool_round(completion, results)
        for call, result in zip(completion.tool_calls, results, strict=True):
            await self._walk.emit(
                ToolCalled, agent=self._agent.name, context=self._context, call=call, result=result
            )

    async def _call(
        self, conversation: Conversation, handler: Handler, tools: list[Tool], choice: str
    ) -> Completion:
        context, statistics = self._context, self._context.statistics
        options: dict[str, Any] = {"skip_cache": self.skip_cache}
        if tools:
            options |= {"tools": tools, "tool_choice": choice}
        began = time.perf_counter()
        statistics.started(began)
        try:
            if context.streaming or self._walk.streaming:
                completion = await self._streamed(conversation, handler, options)
            else:
                completion = await self._walk.client.complete(self._target, conversation, **options)
        except LMClientError as error:
            context.graph.append(graph.FAILED_CALL)
            error.add_note(f"In the agent {self._agent.name!r}.")
            if error.partial is not None:
                self._book(error.partial)
            raise
        finally:
            now = time.perf_counter()
            statistics.ended(now, now - began)
        self._book(completion)
        context.last_completion = completion
        if (mark := graph.STOPPED.get(completion.finish_reason)) is not None:
            context.graph.append(mark)
        return completion

    async def _streamed(
        self, conversation: Conversation, handler: Handler, options: dict[str, Any]
    ) -> Completion:
        walk, context = self._walk, self._context
        async with walk.client.stream(self._target, conversation, **options) as stream:
            async for chunk in stream:
                told = handler.on_chunk(chunk, context)
                if inspect.isawaitable(told):
                    await told
                await walk.updated(context)
                await walk.emit(ChunkReceived, agent=self._agent.name, context=context, chunk=chunk)
        return stream.completion

    def _book(self, completion: Completion) -> None:
        self._context.statistics.add(completion)
        self._step.add(completion)
