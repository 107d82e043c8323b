"""Anthropic's Messages API, as spoken by Anthropic and by compatible servers such as llama.cpp.

https://docs.anthropic.com/en/api/messages. What this wire has and others have not goes through
`extra_body`, as it stands: `{"cache_control": {"type": "ephemeral"}}` caches the prompt up to its
last block, `{"tools": [...]}` replaces the tools by those that Anthropic runs, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.tools import Tool
from lmclient.errors import ProtocolError, ProviderError, UnsupportedOptionError
from lmclient.protocols import provider_errors
from lmclient.protocols.anthropic_messages import encode_messages, encode_system
from lmclient.protocols.anthropic_stream import AnthropicDecoder
from lmclient.protocols.anthropic_thinking import Thinking, encode_thinking
from lmclient.protocols.asking import conversation_of, takes_schema
from lmclient.protocols.base import WireProtocol, as_dict, decode_json
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.endpoints import endpoint_url, request_headers
from lmclient.protocols.openai_chat import encode_tool_choice, splitter_of

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

Json = dict[str, Any]
VERSION = "2023-06-01"
"""The header `anthropic-version`; a profile's `headers` may name another."""

DEFAULT_MAX_TOKENS = 8192
"""Sent where neither the call nor the profile limits the output, since the API insists on a limit.

What a reasoning effort is expected to take comes on top (`anthropic_thinking.BUDGETS`).
"""

MODELS_PER_PAGE = 1000
_encode = msgspec.json.Encoder().encode


class Anthropic(WireProtocol):
    """The protocol `/v1/messages`."""

    name = "anthropic"
    prefix = "/v1"
    endpoints = ("/messages",)

    def encode(self, request: CompletionRequest, dialect: Dialect) -> HttpRequest:
        profile = request.profile
        return HttpRequest(
            url=endpoint_url(profile, self, dialect, self.endpoints[0]),
            headers=_headers(profile, dialect, stream=request.stream),
            body=_encode(encode_body(request, dialect)),
            connect_timeout=profile.timeouts.connect,
        )

    def decoder(self, request: CompletionRequest, dialect: Dialect) -> AnthropicDecoder:
        return AnthropicDecoder(splitter_of(request.profile))

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return provider_errors.error_from_body(status, headers, body)

    def encode_models(self, profile: ModelProfile, dialect: Dialect) -> HttpRequest:
        url = endpoint_url(profile, self, dialect, "/models")
        return HttpRequest(
            method="GET",
            url=f"{url}{'&' if '?' in url else '?'}limit={MODELS_PER_PAGE}",
            headers=_headers(profile, dialect, body=False),
            connect_timeout=profile.timeouts.connect,
        )

    def decode_models(self, body: bytes) -> list[str]:
        models = as_dict(decode_json(msgspec.json.Decoder(), body, "a list of models")).get("data")
        if not isinstance(models, list):
            raise ProtocolError("The server's list of models has no `data`.")
        return [model["id"] for model in models if isinstance(as_dict(model).get("id"), str)]


def _headers(
    profile: ModelProfile, dialect: Dialect, *, stream: bool = False, body: bool = True
) -> dict[str, str]:
    return {"anthropic-version": VERSION, **request_headers(profile, dialect, stream=stream, body=body)}


def encode_body(request: CompletionRequest, dialect: Dialect) -> Json:
    """The JSON body of a call. Raises `UnsupportedOptionError` for a `seed`, which has no field."""
    profile, options = request.profile, request.options
    if options.seed is not None:
        raise UnsupportedOptionError(
            f"Profile {profile.name!r}: Anthropic's API takes no seed; call without `seed`."
        )
    extra = {**profile.extra_body, **options.extra_body}
    conversation = conversation_of(request, dialect)
    messages = encode_messages(conversation)
    limit = profile.max_tokens if options.max_tokens is None else options.max_tokens
    thinking = encode_thinking(request, messages, limit or 0, extra)
    body: Json = {
        "model": profile.model,
        "max_tokens": limit or DEFAULT_MAX_TOKENS + thinking.allowance,
        "messages": messages,
    }
    if system := encode_system(conversation):
        body["system"] = system
    if request.stream:
        body["stream"] = True
    add_sampling(body, request, dialect, thinking)
    if options.tools:
        body["tools"] = [encode_tool(tool) for tool in options.tools]
        if choice := encode_choice(options):
            body["tool_choice"] = choice
    if thinking.field is not None:
        body["thinking"] = thinking.field
    if output := output_config(request, dialect, thinking):
        body["output_config"] = output
    return {**body, **extra}


def add_sampling(body: Json, request: CompletionRequest, dialect: Dialect, thinking: Thinking) -> None:
    """Adds `temperature`, `top_p` and `stop_sequences`.

    The first two are left out where they are refused: by models that sample in one way only, and
    while a model thinks. A `top_p` of 1 means nothing, and some models refuse it beside a temperature.
    """
    profile, options = request.profile, request.options
    if options.stop:
        body["stop_sequences"] = list(options.stop)
    fixed = dialect.fixed_sampling_models
    if thinking.on or (fixed and re.match(fixed, profile.model)):
        return
    temperature = profile.temperature if options.temperature is None else options.temperature
    top_p = profile.top_p if options.top_p is None else options.top_p
    if temperature is not None:
        body["temperature"] = temperature
    if top_p is not None and top_p != 1:
        body["top_p"] = top_p


def encode_tool(tool: Tool) -> Json:
    """A tool as it stands in the request."""
    encoded: Json = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": {"type": "object", **tool.parameters},
    }
    if tool.strict is not None:
        encoded["strict"] = tool.strict
    return encoded


def encode_choice(options: Options) -> Json | None:
    """The tool choice, None for the API's default. Raises `BadRequestError` for an unknown tool."""
    said = encode_tool_choice(options.tool_choice, options.tools)
    choice: Json
    if isinstance(said, dict):
        choice = {"type": "tool", "name": options.tool_choice}
    else:
        choice = {"type": "any" if said == "required" else said}
    if options.parallel_tool_calls is False and said != "none":
        choice["disable_parallel_tool_use"] = True
    return None if choice == {"type": "auto"} else choice


def output_config(request: CompletionRequest, dialect: Dialect, thinking: Thinking) -> Json:
    """The effort and the format of the answer."""
    wanted = request.options.response_format
    config: Json = {}
    if thinking.effort:
        config["effort"] = thinking.effort
    if wanted is not None and takes_schema(request, dialect):
        from lmclient.core.structured import strict_schema

        config["format"] = {"type": "json_schema", "schema": strict_schema(wanted)}
    return config
