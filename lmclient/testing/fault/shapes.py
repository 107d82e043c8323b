"""The shapes of chat and text completions, whole and streamed, and what a healthy answer contains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lmclient.testing.fault.call import Call, Json
from lmclient.testing.fault.reply import DONE, Reply, chunked, encode, event, plain

MODEL = "mock"
CREATED = 1_760_000_000
PIECES = ("The", " quick", " brown", " fox", " jumps", " over", " the", " lazy", " dog", ".")
TEXT = "".join(PIECES)
USAGE: Json = {
    "prompt_tokens": 25,
    "completion_tokens": len(PIECES),
    "total_tokens": 25 + len(PIECES),
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 0},
}

FEW = 3  # chunks with text before a stream goes wrong


@dataclass(frozen=True)
class ToolCall:
    """A tool call that the model asks for; arguments is JSON text."""

    id: str
    name: str
    arguments: str


def chunk(call: Call, delta: Json, finish: str | None = None, **extra: object) -> Json:
    """The payload of one streamed event, with one choice."""
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    if call.endpoint == "text":
        choice = {"index": 0, "text": delta.get("content", ""), "finish_reason": finish}
    return {**envelope(call), "choices": [choice], **extra}


def envelope(call: Call) -> Json:
    """The fields around choices and usage."""
    prefix, kind = ("chatcmpl", "chat.completion") if call.endpoint == "chat" else ("cmpl", "text_completion")
    if call.stream and call.endpoint == "chat":
        kind += ".chunk"
    return {
        "id": f"{prefix}-{call.scenario}-{call.number}",
        "object": kind,
        "created": CREATED,
        "model": call.body.get("model", MODEL),
    }


def opening(call: Call) -> list[Json]:
    """The chunk with the role; text completions have none."""
    return [chunk(call, {"role": "assistant", "content": ""})] if call.endpoint == "chat" else []


def text_chunks(call: Call, pieces: Iterable[str] = PIECES) -> list[Json]:
    return [chunk(call, {"content": piece}) for piece in pieces]


def usage_chunk(call: Call, usage: Json = USAGE) -> Json:
    return {**envelope(call), "choices": [], "usage": usage}


def ending(call: Call, finish: str = "stop") -> list[Json]:
    return [chunk(call, {}, finish), usage_chunk(call)]


def completion(
    call: Call, text: str | None = TEXT, finish: str = "stop", tool_calls: Sequence[ToolCall] = ()
) -> Json:
    """The body of an answer that is not streamed."""
    choice: Json = {"index": 0, "text": text, "finish_reason": finish}
    if call.endpoint == "chat":
        message: Json = {"role": "assistant", "content": text}
        if tool_calls:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in tool_calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**envelope(call), "choices": [choice], "usage": USAGE}


def healthy(call: Call, pieces: Iterable[str] = PIECES, finish: str = "stop") -> list[Json]:
    """The payloads of a well-formed stream."""
    return [*opening(call), *text_chunks(call, pieces), *ending(call, finish)]


def events(payloads: Iterable[Json]) -> list[bytes]:
    """The payloads as events, with [DONE] at the end."""
    return [*map(event, payloads), DONE]


def complete(call: Call, pieces: Sequence[str] = PIECES, finish: str = "stop") -> Reply:
    """A well-formed answer with this text, streamed or not as the call asks."""
    if call.stream:
        return chunked(call, events(healthy(call, pieces, finish)))
    return plain(call, encode(completion(call, "".join(pieces), finish)))


def beginning(call: Call) -> Reply:
    """A well-formed answer up to FEW chunks, or half of the body."""
    whole = complete(call)
    if call.stream:
        return replace(whole, writes=whole.writes[: 1 + len(opening(call)) + FEW])
    start, body = whole.writes
    return replace(whole, writes=[start, body[: len(body) // 2]])
