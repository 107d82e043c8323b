"""Tools that a model may call, its calls, and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Json = dict[str, Any]


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may ask the application to call.

    `parameters` is a JSON schema of an object. `strict` asks the provider to enforce it, where
    the provider can.
    """

    name: str
    description: str
    parameters: Json
    strict: bool | None = None

    @classmethod
    def from_function(cls, function: Callable[..., object]) -> Tool:
        """The tool that describes `function`: its signature, type hints and docstring.

        Raises `TypeError` if a parameter has no type that JSON can carry.
        """
        from lmclient.core.signature import describe

        return cls(*describe(function))


class ToolCall(msgspec.Struct, frozen=True):
    """A model's wish to call a tool.

    `arguments` is None where the model's text, kept in `raw_arguments`, is not a JSON object, or
    where the answer was cut off inside the call.
    """

    id: str
    name: str
    arguments: Json | None
    raw_arguments: str = ""


class ToolResult(msgspec.Struct, frozen=True):
    """What the application answers to the `ToolCall` with the same id."""

    tool_call_id: str
    content: str
    is_error: bool = False
