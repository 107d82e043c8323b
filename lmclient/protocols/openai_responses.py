"""OpenAI's Responses, spoken without state on the server.

https://platform.openai.com/docs/api-reference/responses. Nothing is stored (`store: false`); instead
the encrypted reasoning is asked for and goes back with the next request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lmclient.core.conversation import Role, Turn
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.tools import Tool
from lmclient.errors import UnsupportedOptionError
from lmclient.protocols.asking import conversation_of, takes_schema
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.extra_body import merge
from lmclient.protocols.openai import OpenAIProtocol
from lmclient.protocols.openai_chat import add_sampling, encode_tool_choice, splitter_of
from lmclient.protocols.openai_responses_decoder import OpenAIResponsesDecoder
from lmclient.protocols.openai_responses_input import encode_input

Json = dict[str, Any]


class OpenAIResponses(OpenAIProtocol):
    """The protocol `/responses`."""

    name = "openai-responses"
    endpoints = ("/responses",)

    def body(self, request: CompletionRequest, dialect: Dialect) -> Json:
        return encode_body(request, dialect)

    def decoder(self, request: CompletionRequest, dialect: Dialect) -> OpenAIResponsesDecoder:
        return OpenAIResponsesDecoder(splitter_of(request.profile))


def encode_body(request: CompletionRequest, dialect: Dialect) -> Json:
    """The JSON body of a call. Raises `UnsupportedOptionError` for `stop` and `seed`."""
    profile, options = request.profile, request.options
    _refuse(options)
    instructions, turns = _split_instructions(conversation_of(request, dialect).turns)
    body: Json = {"model": profile.model, "input": encode_input(turns)}
    if instructions:
        body["instructions"] = instructions
    body["store"] = False
    body["include"] = ["reasoning.encrypted_content"]
    if request.stream:
        body["stream"] = True
    spelling = msgspec.structs.replace(
        dialect, max_tokens_field="max_output_tokens", effort="reasoning.effort"
    )
    add_sampling(body, request, spelling)
    if profile.reasoning_summary:
        body["reasoning"] = {**body.get("reasoning", {}), "summary": profile.reasoning_summary}
    _add_tools(body, options)
    if options.response_format is not None:
        body["text"] = {"format": _text_format(options.response_format, takes_schema(request, dialect))}
    return merge(merge(body, profile.extra_body), options.extra_body)


def _refuse(options: Options) -> None:
    for name, value in (("stop", options.stop), ("seed", options.seed)):
        if value is not None and value != () and value != []:
            raise UnsupportedOptionError(
                f"OpenAI's Responses API has no `{name}`; leave it out, or use the provider openai-chat."
            )


def _split_instructions(turns: list[Turn]) -> tuple[str, list[Turn]]:
    """The system turn at the head, which has a field of its own, and the turns after it.

    A system turn that stands alone stays where it is: the input must not be empty.
    """
    if len(turns) > 1 and turns[0].role is Role.SYSTEM and isinstance(turns[0].content, str):
        return turns[0].content, turns[1:]
    return "", turns


def _add_tools(body: Json, options: Options) -> None:
    if not options.tools:
        return
    body["tools"] = [encode_tool(tool) for tool in options.tools]
    choice = options.tool_choice
    if choice != "auto":
        said = encode_tool_choice(choice, options.tools)
        body["tool_choice"] = said if isinstance(said, str) else {"type": "function", "name": choice}
    if options.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = options.parallel_tool_calls


def encode_tool(tool: Tool) -> Json:
    """A tool as it stands in the request.

    `strict` is always said: without it this API makes a schema strict, and so every parameter
    required.
    """
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": bool(tool.strict),
    }


def _text_format(response_format: object, schema: bool) -> Json:
    """The format as chat completions have it, one level flatter."""
    from lmclient.core.structured import json_schema_format

    chat = json_schema_format(response_format, schema)
    return {"type": chat["type"], **chat.get("json_schema", {})}
