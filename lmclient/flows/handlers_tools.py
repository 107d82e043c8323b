"""ToolCallingHandler: lets the model call functions before another handler reads its answer."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from lmclient.core.completion import Chunk, Completion
from lmclient.core.tools import Tool
from lmclient.errors import FlowError
from lmclient.flows.handler import Handler, Handles, as_handler

if TYPE_CHECKING:
    from lmclient.flows.context import AgentContext


class ToolCallingHandler(Handler):
    """Offers functions to the model; `delegate` reads the answer that follows the last tool round.

    `tools` are functions, sync or async, described by their signatures and docstrings. The executor
    runs what the model calls, those of one round in parallel, at most `max_tool_rounds` of the agent.

    Raises `FlowError` if two functions have one name, `TypeError` for a signature that JSON cannot
    carry and for a delegate that is no handler.
    """

    def __init__(self, delegate: Handles, tools: Iterable[Callable[..., object]]) -> None:
        functions = list(tools)
        self.tools: list[Tool] = [Tool.from_function(function) for function in functions]
        """What the model is told of the functions."""
        handler = as_handler(delegate)
        if handler is None:
            raise TypeError(f"The delegate {delegate!r:.80} is no handler.")
        self._delegate = handler
        self._functions: dict[str, Callable[..., object]] = {}
        for tool, function in zip(self.tools, functions, strict=True):
            if tool.name in self._functions:
                raise FlowError(f"Two tools of a handler are named {tool.name!r}; names must differ.")
            self._functions[tool.name] = function

    @property
    def tool_functions(self) -> Mapping[str, Callable[..., object]]:
        return self._functions

    def fresh(self) -> Self:
        twin = copy.copy(self)
        twin._delegate = self._delegate.fresh()
        return twin

    def handle(self, completion: Completion, context: AgentContext) -> bool | Awaitable[bool]:
        return self._delegate.handle(completion, context)

    def on_chunk(self, chunk: Chunk, context: AgentContext) -> Any:
        return self._delegate.on_chunk(chunk, context)

    def retry_message(self, error: Exception | None) -> str:
        return self._delegate.retry_message(error)
