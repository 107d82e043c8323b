"""OpenAI's chat completions, as spoken by OpenAI and by every compatible server.

https://platform.openai.com/docs/api-reference/chat and, for what others add: llama.cpp's `timings`,
Groq's `x_groq`, OpenRouter's `usage.cost` and `reasoning_details`, DeepSeek's `reasoning_content`,
Mistral's thinking parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lmclient.core.alternating import alternating
from lmclient.core.completion import Chunk, FinishReason
from lmclient.core.conversation import Role, Turn
from lmclient.core.messages import to_message
from lmclient.core.request import CompletionRequest
from lmclient.core.tools import Tool
from lmclient.errors import BadRequestError, ProtocolError, ProviderError
from lmclient.protocols import provider_errors
from lmclient.protocols.answer import Splitter
from lmclient.protocols.asking import conversation_of, takes_schema
from lmclient.protocols.base import SSEDecoder, as_dict, as_str, decode_json
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.openai import OpenAIProtocol
from lmclient.protocols.openai_usage import read_usage
from lmclient.protocols.stated_usage import read_cost, take_usage

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

Json = dict[str, Any]


class Delta(msgspec.Struct, gc=False):
    """A message, or the part of it in one event. The fields are untyped: servers disagree on them."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class Choice(msgspec.Struct, gc=False):
    """One of the alternatives; only the first is asked for."""

    index: Any = 0
    delta: Delta | None = None
    message: Delta | None = None
    text: Any = None  # in text completions
    logprobs: Any = None
    finish_reason: Any = None
    usage: Any = None  # Moonshot, beside the finish reason
    error: Any = None


class Body(msgspec.Struct, gc=False):
    """An event of a stream, or a whole answer."""

    id: Any = None
    model: Any = None
    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: Any = None
    timings: Any = None
    service_tier: Any = None


_decoder = msgspec.json.Decoder(Body)
_encode = msgspec.json.Encoder().encode

FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "error": FinishReason.ERROR,
}


class OpenAIChat(OpenAIProtocol):
    """The protocol `/chat/completions`."""

    name = "openai-chat"
    endpoints = ("/chat/completions",)

    def body(self, request: CompletionRequest, dialect: Dialect) -> Json:
        return encode_body(request, dialect)

    def decoder(self, request: CompletionRequest, dialect: Dialect) -> OpenAIChatDecoder:
        return OpenAIChatDecoder(splitter_of(request.profile))


def splitter_of(profile: ModelProfile) -> Splitter | None:
    """The splitter that the profile's `reasoning_tags` ask for."""
    if not profile.reasoning_tags:
        return None
    from lmclient.prompts.reasoning import tag_splitter

    return tag_splitter(profile.reasoning_tags)


def encode_body(request: CompletionRequest, dialect: Dialect) -> Json:
    """The JSON body of a call."""
    profile, options = request.profile, request.options
    turns = conversation_of(request, dialect).turns
    if profile.roles == "alternating":
        turns = alternating(turns)
    body: Json = {"model": profile.model, "messages": encode_messages(turns, dialect)}
    if request.stream:
        body["stream"] = True
        if dialect.stream_options:
            body["stream_options"] = {"include_usage": True}
    add_sampling(body, request, dialect)
    if options.tools:
        body["tools"] = [encode_tool(tool) for tool in options.tools]
        if options.tool_choice != "auto":
            body["tool_choice"] = encode_tool_choice(options.tool_choice, options.tools)
        if options.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = options.parallel_tool_calls
    if options.response_format is not None:
        from lmclient.core.structured import json_schema_format

        schema = takes_schema(request, dialect)
        body["response_format"] = json_schema_format(options.response_format, schema)
    return {**body, **profile.extra_body, **options.extra_body}


def add_sampling(body: Json, request: CompletionRequest, dialect: Dialect) -> None:
    """Adds the token limit, sampling and reasoning options that the call or its profile set."""
    profile, options = request.profile, request.options
    max_tokens = profile.max_tokens if options.max_tokens is None else options.max_tokens
    if max_tokens:  # 0 is the server's own limit
        body[dialect.max_tokens_field] = max_tokens
    temperature = profile.temperature if options.temperature is None else options.temperature
    top_p = profile.top_p if options.top_p is None else options.top_p
    if not (dialect.fixed_sampling_models and re.match(dialect.fixed_sampling_models, profile.model)):
        if temperature is not None:
            body["temperature"] = temperature
        if top_p is not None:
            body["top_p"] = top_p
    if options.stop:
        body["stop"] = list(options.stop)
    if options.seed is not None:
        body[dialect.seed_field] = options.seed
    effort = options.reasoning_effort or profile.reasoning_effort
    if effort and dialect.effort == "reasoning.effort":
        body["reasoning"] = {"effort": effort}
    elif effort and dialect.effort:
        body[dialect.effort] = effort


def encode_messages(turns: list[Turn], dialect: Dialect) -> list[Json]:
    """The turns as message dicts, without what this vendor refuses in a history."""
    return [_encode_turn(turn, dialect) for turn in turns]


def _encode_turn(turn: Turn, dialect: Dialect) -> Json:
    if type(turn.content) is str and turn.role in (Role.USER, Role.SYSTEM) and turn.name is None:
        return {"role": turn.role, "content": turn.content}
    message = to_message(turn)
    reasoning = message.pop("reasoning_content", None)
    if reasoning and turn.tool_calls and dialect.replay_reasoning:
        message[dialect.replay_reasoning] = reasoning
    for item in turn.provider_items:
        if item.get("type") == "reasoning_details":  # OpenRouter wants them back unchanged
            message["reasoning_details"] = item["reasoning_details"]
    return message


def encode_tool(tool: Tool) -> Json:
    """A tool as it stands in the request."""
    function: Json = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def encode_tool_choice(choice: str, tools: Any) -> str | Json:
    """The tool choice as it stands in the request. Raises `BadRequestError` for an unknown tool."""
    if choice in ("auto", "required", "none"):
        return choice
    if not any(tool.name == choice for tool in tools):
        names = ", ".join(repr(tool.name) for tool in tools)
        raise BadRequestError(
            f'tool_choice is {choice!r}; expected "auto", "required", "none" or one of the tools {names}.'
        )
    return {"type": "function", "function": {"name": choice}}


class OpenAIChatDecoder(SSEDecoder):
    """Reads a chat completion, streamed or not."""

    def read_event(self, name: bytes, data: bytes) -> Chunk | None:
        if data == b"[DONE]" or (data[:1].isspace() and data.strip() == b"[DONE]"):
            self.ended = True
            return None
        body = decode_json(_decoder, data, "an event")
        if name == b"error" and body.error is None:
            raise provider_errors.error_from_object(as_dict(msgspec.json.decode(data)))
        return self._read(body)

    def read_body(self, data: bytes) -> Chunk | None:
        body = decode_json(_decoder, data, "an answer")
        if body.choices is None and body.error is None:
            raise ProtocolError(f"The server's answer has no choices: {data[:80]!r}")
        self.ended = True
        return self._read(body)

    def complete(self) -> bool:
        return self.ended or self.answer.finish_reason is not None

    def _read(self, body: Body) -> Chunk | None:
        answer = self.answer
        if body.error is not None:
            raise _error(body.error)
        if not answer.id and type(body.id) is str:
            answer.id = body.id
        if not answer.model and type(body.model) is str:
            answer.model = body.model
        if body.service_tier is not None:
            answer.keep("service_tier", body.service_tier)
        if body.usage is not None or body.x_groq is not None or body.timings is not None:
            usage = body.usage if isinstance(body.usage, dict) else as_dict(body.x_groq).get("usage")
            self._read_usage(usage, body.timings, body.choices or ())
        for choice in body.choices or ():
            if not choice.index:  # 0, or not given
                return self._read_choice(choice)
        return None

    def _read_choice(self, choice: Choice) -> Chunk | None:
        delta = choice.delta if choice.delta is not None else choice.message
        if choice.error is not None:
            raise _error(choice.error)
        if choice.finish_reason:
            self._read_finish(choice)
        if choice.logprobs is not None:
            self._read_logprobs(choice.logprobs)
        if delta is None:
            return None
        if delta.tool_calls:
            self._read_calls(delta.tool_calls, whole=delta is choice.message)
        elif delta.function_call:
            self._read_calls([{"index": 0, "function": delta.function_call}])
        content = delta.content
        if type(content) is str:
            text, thinking = content, ""
        elif isinstance(content, list):
            text, thinking = _read_parts(content)
        else:
            text = thinking = ""
        if not text and delta.refusal:
            text = as_str(delta.refusal)
        reasoning = delta.reasoning_content or delta.reasoning or thinking
        if delta.reasoning_details:
            reasoning = self._read_details(delta.reasoning_details, as_str(reasoning))
        if not reasoning:
            return self.answer.add(text) if text else None
        return self.answer.add(text, as_str(reasoning))

    def _read_finish(self, choice: Choice) -> None:
        said = choice.finish_reason
        reason = FINISH_REASONS.get(as_str(said).lower())
        if reason is None:
            reason = FinishReason.STOP
            self.answer.metadata["finish_reason"] = said
        self.answer.finish_reason = reason
        if choice.usage is not None:
            self._read_usage(choice.usage, None, [choice])

    def _read_logprobs(self, said: object) -> None:
        """Keeps the probabilities of tokens in the metadata, in one table also of a stream."""
        for name, tokens in as_dict(said).items():
            if tokens and isinstance(tokens, list):
                self.answer.metadata.setdefault("logprobs", {}).setdefault(name, []).extend(tokens)

    def _read_calls(self, calls: object, *, whole: bool = False) -> None:
        """Takes calls, or fragments of them; those of a `whole` message are one each."""
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            call = as_dict(call)
            function = as_dict(call.get("function"))
            arguments = function.get("arguments")
            if arguments is not None and not isinstance(arguments, str):  # the value itself, not its JSON
                arguments = _encode(arguments).decode()
            slot = position if whole else call.get("index")
            self.answer.calls.add(
                slot if isinstance(slot, int | float | str) else None,
                as_str(call.get("id")),
                as_str(function.get("name")),
                as_str(arguments),
            )

    def _read_details(self, details: object, reasoning: str) -> str:
        """OpenRouter's reasoning: kept for the next turn, and its text if there is no other."""
        parts = [part for part in details if isinstance(part, dict)] if isinstance(details, list) else []
        items = self.answer.provider_items
        if not items:
            items.append({"type": "reasoning_details", "reasoning_details": []})
        merge_details(items[0]["reasoning_details"], parts)
        if reasoning:
            return reasoning
        return "".join(as_str(part.get("text")) or as_str(part.get("summary")) for part in parts)

    def _ends_in(self, choices: Sequence[Choice]) -> bool:
        """Whether the answer is over with these choices."""
        return self.complete() or any(choice.finish_reason for choice in choices)

    def _read_usage(self, said: object, timings: object, choices: Sequence[Choice]) -> None:
        usage = as_dict(said)
        stated = read_usage(usage, timings, self.answer.model)
        if stated is not None and not stated.usage.output_tokens and not self._ends_in(choices):
            stated = stated._replace(counts_output=False)  # 0 is the output only so far
        take_usage(self.answer, stated, read_cost(usage))


def merge_details(kept: list[Json], parts: list[Json]) -> None:
    """Joins streamed fragments of `reasoning_details` that belong to one block."""
    for part in parts:
        last = kept[-1] if kept else None
        same = last is not None and (last.get("type"), last.get("index")) == (
            part.get("type"),
            part.get("index"),
        )
        if last is None or not same or part.get("index") is None:
            kept.append(dict(part))
            continue
        for key, value in part.items():
            if key in ("text", "summary", "data") and isinstance(value, str):
                last[key] = as_str(last.get(key)) + value
            elif value is not None:
                last[key] = value


def _read_parts(parts: list[Any]) -> tuple[str, str]:
    """The text and the thinking of content in parts, as Mistral sends it."""
    text, thinking = [], []
    for part in map(as_dict, parts):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            if isinstance(inner, list):
                thinking += [as_str(as_dict(piece).get("text")) for piece in inner]
            else:
                thinking.append(as_str(inner))
        else:
            text.append(as_str(part.get("text")))
    return "".join(text), "".join(thinking)


def _error(error: object) -> ProviderError:
    if isinstance(error, dict):
        return provider_errors.error_from_object(error)
    return provider_errors.error_from_object({"message": str(error)})
