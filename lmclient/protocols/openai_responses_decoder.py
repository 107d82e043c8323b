"""Answers of OpenAI's Responses: one JSON body, or a stream of typed events.

https://platform.openai.com/docs/api-reference/responses-streaming. An answer is a list of items. In
a stream an item is announced, arrives in deltas, and is then repeated whole; what had no deltas is
taken from the repetition. llama.cpp leaves out `output_index` and the ids of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from lmclient.core.completion import Chunk, FinishReason
from lmclient.errors import ProtocolError, ProviderError
from lmclient.protocols import provider_errors
from lmclient.protocols.answer import Splitter
from lmclient.protocols.base import SSEDecoder, as_dict, as_str, decode_json
from lmclient.protocols.openai_responses_input import message_text
from lmclient.protocols.openai_usage import read_usage
from lmclient.protocols.stated_usage import read_cost, take_usage

Json = dict[str, Any]
BETWEEN_PARTS = "\n\n"
"""What separates the parts of the reasoning."""

_TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_INCOMPLETE = {
    "max_output_tokens": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}
_encode = msgspec.json.Encoder().encode


class Event(msgspec.Struct):
    """The fields of all events that are read. They are untyped: servers disagree on them."""

    type: Any = None
    delta: Any = None
    item: Any = None
    item_id: Any = None
    output_index: Any = None
    summary_index: Any = None
    content_index: Any = None
    arguments: Any = None
    response: Any = None
    error: Any = None
    code: Any = None
    message: Any = None


_event_decoder = msgspec.json.Decoder(Event)
_body_decoder = msgspec.json.Decoder()


class OpenAIResponsesDecoder(SSEDecoder):
    """Reads a response, streamed or not."""

    def __init__(self, splitter: Splitter | None = None) -> None:
        super().__init__(splitter)
        self._streamed: set[Hashable] = set()  # the items of which a delta has arrived
        self._done = False  # whether any item was repeated whole
        self._part: tuple[Hashable, ...] | None = None  # of the reasoning, the one that arrives
        self._reasoned = False

    def read_event(self, name: bytes, data: bytes) -> Chunk | None:
        if data == b"[DONE]":  # some servers end with it; the terminal event is what counts
            return None
        event = decode_json(_event_decoder, data, "an event")
        kind = as_str(event.type) or name.decode("utf-8", "replace")
        if kind in _TERMINAL:
            return self._read_end(as_dict(event.response))
        handler = _HANDLERS.get(kind)
        if handler is not None:
            return handler(self, event)
        if not kind and event.error is not None:  # a gateway's error in place of an event
            raise _error_of(event)
        return None

    def read_body(self, data: bytes) -> Chunk | None:
        body = as_dict(decode_json(_body_decoder, data, "an answer"))
        if "output" not in body and body.get("error") is None:
            raise ProtocolError(f"The server's answer has no output: {data[:80]!r}")
        return self._read_end(body)

    def complete(self) -> bool:
        return self.ended

    def _read_text(self, event: Event) -> Chunk | None:
        self._streamed.add(_key(event))
        return self.answer.add(as_str(event.delta))

    def _read_summary(self, event: Event) -> Chunk | None:
        return self._read_reasoning(event, ("summary", event.summary_index))

    def _read_reasoning_text(self, event: Event) -> Chunk | None:
        return self._read_reasoning(event, ("content", event.content_index))

    def _read_reasoning(self, event: Event, part: tuple[Hashable, ...]) -> Chunk | None:
        key = _key(event)
        self._streamed.add(key)
        text = as_str(event.delta)
        if not text:
            return None
        if self._reasoned and self._part != (key, *part):
            text = BETWEEN_PARTS + text
        self._reasoned, self._part = True, (key, *part)
        return self.answer.add("", text)

    def _read_added(self, event: Event) -> None:
        item = as_dict(event.item)
        if item.get("type") == "function_call":
            self.answer.calls.add(_key(event), as_str(item.get("call_id")), as_str(item.get("name")), "")

    def _read_arguments(self, event: Event) -> None:
        key = _key(event)
        self._streamed.add(key)
        self.answer.calls.add(key, "", "", as_str(event.delta))

    def _read_arguments_done(self, event: Event) -> None:
        key = _key(event)
        if key not in self._streamed:
            self._streamed.add(key)
            self.answer.calls.add(key, "", "", _argument_text(event.arguments))

    def _read_done(self, event: Event) -> Chunk | None:
        item = as_dict(event.item)
        self._done = True
        self.answer.provider_items.append(item)
        return self.answer.add(*self._rest_of(_key(event), item))

    def _read_error(self, event: Event) -> None:
        self.answer.finish_reason = FinishReason.ERROR
        raise _error_of(event)

    def _read_created(self, event: Event) -> None:
        self._read_head(as_dict(event.response))

    def _rest_of(self, key: Hashable, item: Json) -> tuple[str, str]:
        """The text and the reasoning of a whole item that have not arrived as deltas."""
        arrived = key in self._streamed
        match item.get("type"):
            case "message" if not arrived:
                return message_text(item), ""
            case "reasoning" if not arrived:
                text = BETWEEN_PARTS.join(reasoning_parts(item))
                if text and self._reasoned:
                    text = BETWEEN_PARTS + text
                self._reasoned = self._reasoned or bool(text)
                return "", text
            case "function_call":
                arguments = "" if arrived else _argument_text(item.get("arguments"))
                self.answer.calls.add(key, as_str(item.get("call_id")), as_str(item.get("name")), arguments)
        return "", ""

    def _read_end(self, response: Json) -> Chunk | None:
        """Takes the whole response: its status, its usage, and what of it has not arrived yet."""
        answer = self.answer
        self.ended = True
        self._read_head(response)
        usage = as_dict(response.get("usage"))
        take_usage(answer, read_usage(usage, model=answer.model), read_cost(usage))
        output = response.get("output")
        items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        text = reasoning = ""
        for position, item in () if self._done else enumerate(items):
            if not self._streamed & {position, item.get("id"), item.get("call_id")}:
                more_text, more_reasoning = self._rest_of(position, item)
                text, reasoning = text + more_text, reasoning + more_reasoning
        if items:
            answer.provider_items = items
        if not any(item.get("type") != "message" or "phase" in item for item in answer.provider_items):
            answer.provider_items = []  # plain text needs nothing else to go back
        answer.finish_reason = self._finish_reason(response)
        chunk = answer.add(text, reasoning)
        if (error := response.get("error")) is not None:
            raise provider_errors.error_from_object(
                error if isinstance(error, dict) else {"message": str(error)}
            )
        return chunk

    def _read_head(self, response: Json) -> None:
        self.answer.id = as_str(response.get("id")) or self.answer.id
        self.answer.model = as_str(response.get("model")) or self.answer.model
        if response.get("service_tier") != "auto":  # which only says that the server chooses
            self.answer.keep("service_tier", response.get("service_tier"))

    def _finish_reason(self, response: Json) -> FinishReason | None:
        """Why the response ended, None while it has not."""
        metadata = self.answer.metadata
        match response.get("status"):
            case "completed" | None if response.get("error") is None:
                return FinishReason.STOP
            case "incomplete":
                said = as_dict(response.get("incomplete_details")).get("reason")
                if said is not None and said not in _INCOMPLETE:
                    metadata["finish_reason"] = said
                return FinishReason.LENGTH if said is None else _INCOMPLETE.get(said, FinishReason.ERROR)
            case "queued" | "in_progress":
                return None
            case "failed" | "completed" | None:
                return FinishReason.ERROR
            case other:
                metadata["finish_reason"] = other
                return FinishReason.ERROR


_HANDLERS: dict[str, Callable[[OpenAIResponsesDecoder, Event], Chunk | None]] = {
    "response.output_text.delta": OpenAIResponsesDecoder._read_text,
    "response.refusal.delta": OpenAIResponsesDecoder._read_text,
    "response.reasoning_summary_text.delta": OpenAIResponsesDecoder._read_summary,
    "response.reasoning_text.delta": OpenAIResponsesDecoder._read_reasoning_text,
    "response.output_item.added": OpenAIResponsesDecoder._read_added,
    "response.function_call_arguments.delta": OpenAIResponsesDecoder._read_arguments,
    "response.function_call_arguments.done": OpenAIResponsesDecoder._read_arguments_done,
    "response.output_item.done": OpenAIResponsesDecoder._read_done,
    "response.created": OpenAIResponsesDecoder._read_created,
    "error": OpenAIResponsesDecoder._read_error,
}
"""What is done with the events that matter; all others are passed over."""


def reasoning_parts(item: Json) -> list[str]:
    """The texts of a reasoning item that are not empty: its summary, then its content."""
    texts = []
    for field in ("summary", "content"):
        parts = item.get(field)
        for part in parts if isinstance(parts, list) else ():
            texts.append(as_str(as_dict(part).get("text")))
    return [text for text in texts if text]


def _key(event: Event) -> Hashable:
    """What tells the items of a stream apart: their position, else their id."""
    if isinstance(event.output_index, int):
        return event.output_index
    item = as_dict(event.item)
    return as_str(event.item_id) or as_str(item.get("id")) or as_str(item.get("call_id"))


def _argument_text(arguments: object) -> str:
    return _encode(arguments).decode() if isinstance(arguments, dict) else as_str(arguments)


def _error_of(event: Event) -> ProviderError:
    """The error of an event, which has its facts in itself or in `error`."""
    if isinstance(event.error, dict):
        return provider_errors.error_from_object(event.error)
    return provider_errors.error_from_object({"message": event.message or event.error, "code": event.code})
