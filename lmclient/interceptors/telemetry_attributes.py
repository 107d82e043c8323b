"""A call in the words of the GenAI semantic conventions, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.conversation import Role, TextPart, Turn
from lmclient.core.request import CompletionRequest
from lmclient.core.tools import ToolCall
from lmclient.profiles.model import ModelProfile

Value = str | bool | int | float | Sequence[str]

PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-openai": "azure.ai.openai",
    "azure-ai": "azure.ai.inference",
    "gemini": "gcp.gemini",
}
"""Our names of providers where `gen_ai.provider.name` has another well-known one."""

_PORTS = {"http": 80, "https": 443}


def shared_attributes(profile: ModelProfile) -> dict[str, Any]:
    """The attributes of spans and metrics alike, of which there are few different values."""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": _operation(profile),
        "gen_ai.provider.name": PROVIDERS.get(profile.provider, profile.provider),
    }
    if profile.model:
        attributes["gen_ai.request.model"] = profile.model
    parts = urlsplit(profile.url)
    if parts.hostname:
        attributes["server.address"] = parts.hostname
        attributes["server.port"] = parts.port or _PORTS.get(parts.scheme, 443)
    return attributes


def request_attributes(request: CompletionRequest) -> dict[str, Any]:
    """The attributes of the span of a call that begins. What is not set is left out."""
    profile, options = request.profile, request.options
    maximum = profile.max_tokens if options.max_tokens is None else options.max_tokens
    values: dict[str, Value | None] = {
        "gen_ai.request.stream": True if request.stream else None,
        "gen_ai.request.max_tokens": maximum or None,
        "gen_ai.request.temperature": _either(options.temperature, profile.temperature),
        "gen_ai.request.top_p": _either(options.top_p, profile.top_p),
        "gen_ai.request.seed": options.seed,
        "gen_ai.request.stop_sequences": list(options.stop) or None,
        "gen_ai.output.type": None if options.response_format is None else "json",
        "gen_ai.conversation.id": _conversation_id(request),
        "lmclient.profile": profile.name,
        "lmclient.category": request.category,
        "lmclient.call_id": request.id,
    }
    given = {name: value for name, value in values.items() if value is not None}
    return {**shared_attributes(profile), **given}


def input_messages(request: CompletionRequest) -> str:
    """The conversation as the JSON of `gen_ai.input.messages`."""
    return _json([_message(turn) for turn in request.conversation.turns])


def output_messages(completion: Completion) -> str:
    """The answer as the JSON of `gen_ai.output.messages`."""
    parts = _parts(completion.reasoning, completion.text, completion.tool_calls)
    message = {"role": "assistant", "parts": parts, "finish_reason": completion.finish_reason.value}
    return _json([message])


def _operation(profile: ModelProfile) -> str:
    if profile.prompt_format:
        return "text_completion"
    return "generate_content" if profile.provider == "gemini" else "chat"


def _either(option: float | None, value: float | None) -> float | None:
    return value if option is None else option


def _conversation_id(request: CompletionRequest) -> str | None:
    identity = request.conversation.metadata.get("id")
    return None if identity is None else str(identity)


def _message(turn: Turn) -> dict[str, Any]:
    if turn.role == Role.TOOL:
        result = {"type": "tool_call_response", "id": turn.tool_call_id, "response": turn.text}
        return {"role": "tool", "parts": [result]}
    parts = _parts(turn.reasoning, turn.text, turn.tool_calls)
    if not isinstance(turn.content, str):
        others = [part for part in turn.content if not isinstance(part, TextPart)]
        # Bytes would make the span larger than what collectors take.
        parts += [{"type": "file", "mime_type": part.media_type} for part in others]
    return {"role": str(turn.role), "parts": parts}


def _parts(reasoning: str, text: str, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if reasoning:
        parts.append({"type": "reasoning", "content": reasoning})
    if text:
        parts.append({"type": "text", "content": text})
    for call in calls:
        arguments = call.raw_arguments if call.arguments is None else call.arguments
        parts.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
    return parts


def _json(messages: list[dict[str, Any]]) -> str:
    return msgspec.json.encode(messages, enc_hook=str).decode()
