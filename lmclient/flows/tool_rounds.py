"""Running the tools that a model calls."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import anyio.to_thread
import msgspec

from lmclient.core.completion import Completion
from lmclient.core.signature import bind_arguments
from lmclient.core.tools import Tool, ToolCall, ToolResult
from lmclient.errors import ProtocolError

Functions = Mapping[str, Callable[..., object]]


def tools_and_functions(given: Iterable[Any], of_handler: Functions) -> tuple[list[Tool], Functions]:
    """The tools to offer, and the functions behind them by name.

    `given` are tools and functions; what the handler runs is offered as well. Raises `TypeError` for
    a function that cannot be a tool.
    """
    tools: dict[str, Tool] = {}
    functions: dict[str, Callable[..., object]] = {}
    for item in given:
        tool = item if isinstance(item, Tool) else _described(item)
        tools[tool.name] = tool
        if not isinstance(item, Tool):
            functions[tool.name] = item
    for name, function in of_handler.items():
        functions[name] = function
        if name not in tools:
            tools[name] = msgspec.structs.replace(_described(function), name=name)
    return list(tools.values()), functions


async def run_calls(functions: Functions, completion: Completion) -> list[ToolResult]:
    """The results of all calls of an answer, run at once, in their order.

    An unknown tool, arguments that do not fit and a function that raises give error results, which
    tell the model what was wrong.
    """
    if len(completion.tool_calls) == 1:
        return [await _run(functions, completion.tool_calls[0])]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run(functions, call)) for call in completion.tool_calls]
    return [task.result() for task in tasks]


async def _run(functions: Functions, call: ToolCall) -> ToolResult:
    function = functions.get(call.name)
    if function is None:
        known = ", ".join(functions) or "none"
        return _error(call, f"There is no tool {call.name!r}; the tools are: {known}.")
    if call.arguments is None:
        return _error(call, f"The arguments are not a JSON object: {call.raw_arguments:.200}")
    try:
        arguments = bind_arguments(function, call.arguments)
    except ProtocolError as error:
        return _error(call, str(error))
    try:
        value = await _called(function, arguments)
        return ToolResult(call.id, _as_text(value))
    except Exception as error:  # the boundary to the user's code: the model is told of every failure
        return _error(call, f"The tool {call.name!r} failed: {type(error).__name__}: {error}")


async def _called(function: Callable[..., object], arguments: dict[str, Any]) -> object:
    """What the function gives; one that is not async runs in a thread, so that it may block."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    call = functools.partial(function, **arguments)
    value = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    return await value if inspect.isawaitable(value) else value


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    from pydantic_core import to_json

    return to_json(value, fallback=_plain).decode()


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else str(value)


def _error(call: ToolCall, message: str) -> ToolResult:
    return ToolResult(call.id, message, is_error=True)


@functools.lru_cache(maxsize=256)
def _described(function: Callable[..., object]) -> Tool:
    return Tool.from_function(function)
