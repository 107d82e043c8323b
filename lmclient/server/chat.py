"""POST /v1/chat/completions.

https://platform.openai.com/docs/api-reference/chat/create. Fields that are not in `ChatBody` are
accepted and go nowhere.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Literal

import msgspec

from lmclient.client import CallOptions
from lmclient.core.conversation import Conversation
from lmclient.core.tools import Tool
from lmclient.errors import BadRequestError, UnsupportedOptionError
from lmclient.server.call import Call, tags_of
from lmclient.server.reading import decode
from lmclient.ui.openai import ChatWriter
from lmclient.ui.openai_answer import chat_completion

Json = dict[str, Any]


class StreamOptions(msgspec.Struct):
    """What a streamed answer is to hold."""

    include_usage: bool | None = None


class Function(msgspec.Struct):
    """A function that the model may call."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


class FunctionTool(msgspec.Struct):
    """A tool, which is always a function."""

    type: Literal["function"]
    function: Function


class FunctionName(msgspec.Struct):
    """The name alone."""

    name: str


class FunctionChoice(msgspec.Struct):
    """The choice of one function."""

    type: Literal["function"]
    function: FunctionName


class Sampling(msgspec.Struct, kw_only=True):
    """What the bodies of all APIs share."""

    model: Annotated[str, msgspec.Meta(min_length=1)]
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None


class ChatBody(Sampling, kw_only=True):
    """The fields of a request that mean something here."""

    messages: list[Json]
    stream_options: StreamOptions | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: Json | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    reasoning_effort: str | None = None
    n: int | None = None
    functions: Any = None


_decoder = msgspec.json.Decoder(ChatBody)


def parse_chat(body: bytes) -> Call:
    """The call that a request asks for. Raises `BadRequestError` and `UnsupportedOptionError`."""
    asked = decode(body, _decoder)
    if asked.n not in (None, 1):
        raise UnsupportedOptionError(f"n is {asked.n}; the gateway gives one answer.")
    if asked.functions is not None:
        raise UnsupportedOptionError("functions is not supported any more; use tools.")
    usage = asked.stream_options is not None and bool(asked.stream_options.include_usage)
    return Call(
        model=asked.model,
        conversation=Conversation.of(asked.messages),
        options=_options(asked),
        stream=bool(asked.stream),
        writer=lambda: ChatWriter(asked.model, usage),
        answer=lambda completion: chat_completion(completion, f"chatcmpl-{secrets.token_hex(12)}"),
    )


def sampling_options(asked: Sampling) -> CallOptions:
    """The options that all APIs have in common."""
    return {
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "tags": tags_of(asked.metadata, asked.user),
    }


def response_format(given: Json | None) -> Json | None:
    """The response format, None for plain text. Raises `BadRequestError` for one that is unknown."""
    kind = None if given is None else given.get("type")
    if given is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "json_object"}
    if kind == "json_schema" and isinstance(given.get("json_schema"), dict):
        return given
    raise BadRequestError(
        f"response_format is {given!r:.80}; expected the type text, json_object or json_schema."
    )


def _options(asked: ChatBody) -> CallOptions:
    options = sampling_options(asked)
    options["parallel_tool_calls"] = asked.parallel_tool_calls
    options["response_format"] = response_format(asked.response_format)
    options["stop"] = asked.stop
    options["seed"] = asked.seed
    options["max_tokens"] = asked.max_completion_tokens or asked.max_tokens
    options["reasoning_effort"] = asked.reasoning_effort
    if asked.tools:
        options["tools"] = [_tool(tool.function) for tool in asked.tools]
    choice = asked.tool_choice
    if choice is not None:
        options["tool_choice"] = choice if isinstance(choice, str) else choice.function.name
    return options


def _tool(function: Function) -> Tool:
    parameters = function.parameters or {"type": "object", "properties": {}}
    return Tool(function.name, function.description or "", parameters, function.strict)
