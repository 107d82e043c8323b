"""Ollama's own chat protocol.

https://github.com/ollama/ollama/blob/main/docs/api.md: `/api/chat` answers with one JSON object per
line, the last of which says `done`; `/api/tags` lists the models, `/api/show` what one can do.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lmclient.core.conversation import Conversation, ImagePart, TextPart, Turn
from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest, Options
from lmclient.errors import ProtocolError, ProviderError, UnsupportedOptionError
from lmclient.protocols import provider_errors
from lmclient.protocols.base import WireProtocol, as_dict, decode_json
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.endpoints import endpoint_url, request_headers
from lmclient.protocols.ollama_stream import OllamaDecoder
from lmclient.protocols.openai_chat import encode_tool, splitter_of

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

Json = dict[str, Any]

THINK: dict[str, bool | str] = {
    "none": False,
    "minimal": "low",
    "true": True,
    "false": False,
    "xhigh": "high",
}
"""Reasoning efforts that are spelt differently; all others are sent as they are."""

_DATA_URL = re.compile(r"data:[^,]*;base64,", re.IGNORECASE)
_encode = msgspec.json.Encoder().encode
_json = msgspec.json.Decoder()


class Ollama(WireProtocol):
    """The protocol `/api/chat`. A URL that ends in Ollama's `/v1` or `/api` is taken without it."""

    name = "ollama"
    prefix = ""
    endpoints = ("/api/chat", "/api", "/v1")

    def encode(self, request: CompletionRequest, dialect: Dialect) -> HttpRequest:
        return self._post(request.profile, dialect, "/api/chat", encode_body(request))

    def decoder(self, request: CompletionRequest, dialect: Dialect) -> OllamaDecoder:
        return OllamaDecoder(splitter_of(request.profile), stream=request.stream)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return provider_errors.error_from_body(status, headers, body)

    def encode_models(self, profile: ModelProfile, dialect: Dialect) -> HttpRequest:
        return HttpRequest(
            method="GET",
            url=endpoint_url(profile, self, dialect, "/api/tags"),
            headers=request_headers(profile, dialect, body=False),
            connect_timeout=profile.timeouts.connect,
        )

    def decode_models(self, body: bytes) -> list[str]:
        models = as_dict(decode_json(_json, body, "a list of models")).get("models")
        if not isinstance(models, list):
            raise ProtocolError("The server's list of models has no `models`.")
        return [model["name"] for model in models if isinstance(as_dict(model).get("name"), str)]

    def encode_show(self, profile: ModelProfile, dialect: Dialect) -> HttpRequest:
        """The request for what the profile's model can do."""
        return self._post(profile, dialect, "/api/show", {"model": profile.model})

    def decode_capabilities(self, body: bytes) -> frozenset[str] | None:
        """The capabilities in the answer to that, such as "tools", "thinking" and "vision".

        None if the server is too old (before 0.6.4) to say. Raises `ProtocolError`.
        """
        shown = decode_json(_json, body, "a description of a model")
        if not isinstance(shown, dict):
            raise ProtocolError("The server's description of a model is not an object.")
        capabilities = shown.get("capabilities")
        if not isinstance(capabilities, list):
            return None
        return frozenset(name for name in capabilities if isinstance(name, str))

    def _post(self, profile: ModelProfile, dialect: Dialect, endpoint: str, body: Json) -> HttpRequest:
        return HttpRequest(
            url=endpoint_url(profile, self, dialect, endpoint),
            headers=request_headers(profile, dialect),
            body=_encode(body),
            connect_timeout=profile.timeouts.connect,
        )


def encode_body(request: CompletionRequest) -> Json:
    """The JSON body of a call. Raises `UnsupportedOptionError` for what Ollama cannot be asked.

    `options` of an `extra_body` are added to ours, all else replaces.
    """
    profile, options = request.profile, request.options
    _check_tool_options(options, profile.name)
    body: Json = {
        "model": profile.model,
        "messages": encode_messages(request.conversation),
        "stream": request.stream,  # Ollama streams unless told not to
    }
    if options.tools and options.tool_choice != "none":
        body["tools"] = [encode_tool(tool) for tool in options.tools]
    effort = options.reasoning_effort or profile.reasoning_effort
    if effort:
        body["think"] = THINK.get(effort.lower(), effort)
    if options.response_format is not None:
        from lmclient.core.structured import json_schema

        body["format"] = json_schema(options.response_format)
    extra = {**profile.extra_body, **options.extra_body}
    model_options = {
        **encode_options(request),
        **as_dict(profile.extra_body.get("options")),
        **as_dict(options.extra_body.get("options")),
    }
    return {**body, **extra, **({"options": model_options} if model_options else {})}


def _check_tool_options(options: Options, profile: str) -> None:
    if not options.tools:
        return
    if options.tool_choice not in ("auto", "none"):
        raise UnsupportedOptionError(
            f"Profile {profile!r}: Ollama cannot be made to call a tool; tool_choice is "
            f'{options.tool_choice!r}, expected "auto" or "none".'
        )
    if options.parallel_tool_calls is False:
        raise UnsupportedOptionError(
            f"Profile {profile!r}: Ollama cannot be kept from parallel calls; leave parallel_tool_calls out."
        )


def encode_options(request: CompletionRequest) -> Json:
    """The table `options`: limits and sampling. `max_context_length` sets the size of the context."""
    profile, options = request.profile, request.options
    values: Json = {
        "num_predict": (profile.max_tokens if options.max_tokens is None else options.max_tokens) or None,
        "temperature": profile.temperature if options.temperature is None else options.temperature,
        "top_p": profile.top_p if options.top_p is None else options.top_p,
        "stop": list(options.stop) or None,
        "seed": options.seed,
        "num_ctx": profile.max_context_length or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def encode_messages(conversation: Conversation) -> list[Json]:
    """The turns as messages. Raises `UnsupportedOptionError` for a file or an image by URL."""
    tools = {call.id: call.name for turn in conversation.turns for call in turn.tool_calls}
    return [_encode_turn(turn, tools) for turn in conversation.turns]


def _encode_turn(turn: Turn, tools: dict[str, str]) -> Json:
    message: Json = {"role": turn.role.value, "content": turn.text}
    if images := _images(turn):
        message["images"] = images
    if turn.tool_calls:
        if turn.reasoning:
            message["thinking"] = turn.reasoning
        message["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": call.arguments or {}}}
            for call in turn.tool_calls
        ]
    if turn.tool_call_id is not None:
        message["tool_name"] = turn.name or tools.get(turn.tool_call_id, "")
        message["tool_call_id"] = turn.tool_call_id
    return message


def _images(turn: Turn) -> list[str]:
    """The images in base64."""
    images = []
    for part in () if isinstance(turn.content, str) else turn.content:
        if isinstance(part, TextPart):
            continue
        if not isinstance(part, ImagePart) and not part.media_type.startswith("image/"):
            raise UnsupportedOptionError(
                f"Ollama takes text and images, no file of type {part.media_type!r}."
            )
        if part.data is not None:
            images.append(base64.b64encode(part.data).decode())
        elif part.url is not None and (inline := _DATA_URL.match(part.url)) is not None:
            images.append(part.url[inline.end() :])
        else:
            raise UnsupportedOptionError(
                "Ollama takes images only as bytes, not by URL; read the image and give its `data`."
            )
    return images
