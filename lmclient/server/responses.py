"""POST /v1/responses, stateless: nothing is stored, every request brings its whole conversation.

https://platform.openai.com/docs/api-reference/responses/create. Fields that are not in `ResponsesBody`
are accepted and go nowhere, `store` among them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from lmclient.client import CallOptions
from lmclient.core.completion import Completion
from lmclient.core.tools import Tool
from lmclient.errors import UnsupportedOptionError
from lmclient.server.call import Call
from lmclient.server.chat import Sampling, response_format, sampling_options
from lmclient.server.reading import decode
from lmclient.server.responses_answer import ResponseShape
from lmclient.server.responses_input import read_input
from lmclient.server.responses_writer import ResponsesWriter

Json = dict[str, Any]


class FunctionTool(msgspec.Struct):
    """A function that the model may call."""

    type: Literal["function"]
    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


class FunctionChoice(msgspec.Struct):
    """The choice of one function."""

    type: Literal["function"]
    name: str


class Reasoning(msgspec.Struct):
    """How much the model is to think."""

    effort: str | None = None


class Text(msgspec.Struct):
    """The form of the text."""

    format: Json | None = None


class ResponsesBody(Sampling, kw_only=True):
    """The fields of a request that mean something here."""

    input: str | list[Json]
    instructions: str | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice | None = None
    parallel_tool_calls: bool | None = None
    text: Text | None = None
    reasoning: Reasoning | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    background: bool | None = None


_decoder = msgspec.json.Decoder(ResponsesBody)


def parse_response(body: bytes) -> Call:
    """The call that a request asks for. Raises `BadRequestError` and `UnsupportedOptionError`."""
    asked = decode(body, _decoder)
    if asked.previous_response_id or asked.conversation:
        raise UnsupportedOptionError(
            "previous_response_id and conversation are not supported: the gateway stores no answers. "
            "Send the whole conversation as input."
        )
    if asked.background:
        raise UnsupportedOptionError("background is not supported; use stream.")
    shape = ResponseShape(asked.model, _echo(asked))

    def answer(completion: Completion) -> Json:
        return shape.whole(completion)

    return Call(
        model=asked.model,
        conversation=read_input(asked.input, asked.instructions),
        options=_options(asked),
        stream=bool(asked.stream),
        writer=lambda: ResponsesWriter(shape),
        answer=answer,
    )


def _options(asked: ResponsesBody) -> CallOptions:
    options = sampling_options(asked)
    options["max_tokens"] = asked.max_output_tokens
    options["parallel_tool_calls"] = asked.parallel_tool_calls
    if asked.reasoning is not None:
        options["reasoning_effort"] = asked.reasoning.effort
    if asked.text is not None and asked.text.format is not None:
        options["response_format"] = response_format(_as_in_chat(asked.text.format))
    if asked.tools:
        options["tools"] = [_tool(tool) for tool in asked.tools]
    choice = asked.tool_choice
    if choice is not None:
        options["tool_choice"] = choice if isinstance(choice, str) else choice.name
    return options


def _as_in_chat(format: Json) -> Json:
    """The format in the nesting of chat completions."""
    if format.get("type") != "json_schema":
        return format
    return {"type": "json_schema", "json_schema": {k: v for k, v in format.items() if k != "type"}}


def _tool(tool: FunctionTool) -> Tool:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return Tool(tool.name, tool.description or "", parameters, tool.strict)


def _echo(asked: ResponsesBody) -> Json:
    """What an answer repeats of its request."""
    given: Json = msgspec.to_builtins(asked)
    return {
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "metadata": asked.metadata or {},
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": asked.reasoning and asked.reasoning.effort, "summary": None},
        "store": False,
        "temperature": asked.temperature,
        "text": {"format": (asked.text and asked.text.format) or {"type": "text"}},
        "tool_choice": given["tool_choice"] or "auto",
        "tools": given["tools"] or [],
        "top_p": asked.top_p,
        "truncation": "disabled",
        "user": asked.user,
    }
