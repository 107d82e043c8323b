"""Google's Gemini: generateContent and streamGenerateContent.

https://ai.google.dev/api/generate-content; the same wire serves Vertex AI, where the URL of the
profile ends in `/publishers/google`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.tools import Tool
from lmclient.errors import BadRequestError, ProtocolError, ProviderError, UnsupportedOptionError
from lmclient.protocols.base import WireProtocol, as_dict, decode_json
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.endpoints import endpoint_url, request_headers
from lmclient.protocols.extra_body import merge
from lmclient.protocols.gemini_contents import encode_contents
from lmclient.protocols.gemini_decoder import GeminiDecoder
from lmclient.protocols.gemini_errors import read_error
from lmclient.protocols.openai_chat import encode_tool_choice, splitter_of

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

Json = dict[str, Any]
_encode = msgspec.json.Encoder().encode
_OWN_PATH = re.compile(r"(models|tunedModels|publishers|projects)/")
_SINCE_GEMINI_3 = re.compile(r".*\bgemini-(?![12]\b)")
"""Models that take `thinkingLevel` and check signatures; earlier ones take `thinkingBudget`."""

BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
"""Reasoning effort as tokens, as Google's own OpenAI-compatible endpoint counts it."""


class Gemini(WireProtocol):
    """The protocol `:generateContent`."""

    name = "gemini"
    prefix = "/v1beta"
    endpoints = ("/models",)

    def encode(self, request: CompletionRequest, dialect: Dialect) -> HttpRequest:
        profile = request.profile
        place = _Place(prefix=self.prefix, model=model_path(profile.model))
        method = "streamGenerateContent" if request.stream else "generateContent"
        url = endpoint_url(profile, place, dialect, f"{place.model}:{method}")
        return HttpRequest(
            url=_with_query(url, "alt=sse") if request.stream else url,
            headers=request_headers(profile, dialect, stream=request.stream),
            body=_encode(encode_body(request)),
            connect_timeout=profile.timeouts.connect,
        )

    def decoder(self, request: CompletionRequest, dialect: Dialect) -> GeminiDecoder:
        return GeminiDecoder(splitter_of(request.profile))

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return read_error(status, headers, body)

    def encode_models(self, profile: ModelProfile, dialect: Dialect) -> HttpRequest:
        return HttpRequest(
            method="GET",
            url=_with_query(endpoint_url(profile, self, dialect, "/models"), "pageSize=1000"),
            headers=request_headers(profile, dialect, body=False),
            connect_timeout=profile.timeouts.connect,
        )

    def decode_models(self, body: bytes) -> list[str]:
        models = as_dict(decode_json(msgspec.json.Decoder(), body, "a list of models")).get("models")
        if not isinstance(models, list):
            raise ProtocolError("The server's list of models has no `models`.")
        names = [as_dict(model).get("name") for model in models]
        return [name.removeprefix("models/") for name in names if isinstance(name, str)]


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's methods are, for a profile's URL with or without that path."""

    prefix: str
    model: str

    @property
    def endpoints(self) -> tuple[str, ...]:
        return (f"{self.model}:generateContent", f"{self.model}:streamGenerateContent", "/models")


def model_path(model: str) -> str:
    """The path of a model: `models/` stands before it, unless it says itself where it belongs."""
    path = quote(model, safe="/:@")
    return f"/{path}" if _OWN_PATH.match(model) else f"/models/{path}"


def _with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


def encode_body(request: CompletionRequest) -> Json:
    """The JSON body of a call, the same streamed or not; the URL makes the difference."""
    profile, options = request.profile, request.options
    signatures = _SINCE_GEMINI_3.match(profile.model) is not None
    system, contents = encode_contents(request.conversation.turns, signatures=signatures)
    if not contents:
        raise BadRequestError("Gemini needs a turn of the user beside the system turn; add one.")
    body: Json = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    if config := generation_config(request):
        body["generationConfig"] = config
    if options.tools:
        body["tools"] = [{"functionDeclarations": [encode_tool(tool) for tool in options.tools]}]
        if calling := calling_config(options):
            body["toolConfig"] = {"functionCallingConfig": calling}
    return merge(merge(body, profile.extra_body), options.extra_body)


def generation_config(request: CompletionRequest) -> Json:
    """The token limit, sampling, reasoning and format that the call or its profile set."""
    profile, options = request.profile, request.options
    max_tokens = profile.max_tokens if options.max_tokens is None else options.max_tokens
    config: Json = {
        "maxOutputTokens": max_tokens or None,  # 0 is the server's own limit
        "temperature": profile.temperature if options.temperature is None else options.temperature,
        "topP": profile.top_p if options.top_p is None else options.top_p,
        "stopSequences": list(options.stop) or None,
        "seed": options.seed,
        "thinkingConfig": thinking_config(profile, options.reasoning_effort or profile.reasoning_effort),
    }
    if options.response_format is not None:
        from lmclient.core.schema_strict import object_schema
        from lmclient.core.structured import json_schema

        config["responseMimeType"] = "application/json"
        if options.response_format != {"type": "json_object"}:
            config["responseJsonSchema"] = object_schema(json_schema(options.response_format))
    return {name: value for name, value in config.items() if value is not None}


def thinking_config(profile: ModelProfile, effort: str | None) -> Json | None:
    """How much the model thinks, and whether it shows it; None leaves both to the model.

    Thoughts are asked for where the profile names an effort or a summary; a model that cannot think
    refuses the whole field. Gemini 3 and later cannot be kept from thinking: "none" is their least.
    Raises `UnsupportedOptionError` for an effort that the model cannot be told.
    """
    config: Json = {}
    if effort and not _SINCE_GEMINI_3.match(profile.model):
        if effort not in BUDGETS:
            known = ", ".join(repr(name) for name in BUDGETS)
            raise UnsupportedOptionError(
                f"{profile.model} knows no reasoning_effort {effort!r}; expected one of {known}."
            )
        config["thinkingBudget"] = BUDGETS[effort]
    elif effort:
        config["thinkingLevel"] = "minimal" if effort == "none" else effort
    summary = profile.reasoning_summary or effort
    if summary and summary != "none" and effort != "none":
        config["includeThoughts"] = True
    return config or None


def encode_tool(tool: Tool) -> Json:
    """A tool as it stands in the request."""
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}


def calling_config(options: Options) -> Json | None:
    """Which tools may or must be called, None for the model's choice."""
    if options.parallel_tool_calls is False:
        raise UnsupportedOptionError(
            "Gemini cannot be kept from calling several tools at once; leave parallel_tool_calls out."
        )
    choice = options.tool_choice
    if choice == "auto":
        strict = any(tool.strict for tool in options.tools)
        return {"mode": "VALIDATED"} if strict else None
    if choice in ("required", "none"):
        return {"mode": "ANY" if choice == "required" else "NONE"}
    encode_tool_choice(choice, options.tools)  # raises for a tool that is not offered
    return {"mode": "ANY", "allowedFunctionNames": [choice]}
