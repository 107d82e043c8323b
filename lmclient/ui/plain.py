"""A stream as server-sent events of the plainest kind, for a page's own script."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from lmclient.core.completion import Chunk, Completion
from lmclient.core.stream import AsyncCompletionStream
from lmclient.ui.events import encode, event, events, public_message
from lmclient.ui.openai_answer import call_json, finish_reason, usage_json


def sse_response(stream: AsyncCompletionStream) -> AsyncGenerator[bytes, None]:
    """The answer as server-sent events that `EventSource` or a few lines of script can read.

    Each has one JSON object as its data: `{"text": ...}`, `{"reasoning": ...}` or
    `{"tool_calls": [...]}` for what has arrived, in the end an event `done` with `finish_reason`,
    `usage` (and `cost` in it), `model`, `profile` and `cached`, or an event `failed` with a `message`.
    """
    return events(stream, PlainWriter())


class PlainWriter:
    """Writes the events."""

    def begin(self) -> bytes:
        return b""

    def chunks(self, batch: Sequence[Chunk]) -> bytes:
        pieces: list[bytes] = []
        for chunk in batch:
            if chunk.reasoning:
                pieces.append(event({"reasoning": chunk.reasoning}))
            if chunk.text:
                pieces.append(event({"text": chunk.text}))
            if chunk.tool_calls:
                pieces.append(event({"tool_calls": [call_json(call) for call in chunk.tool_calls]}))
        return b"".join(pieces)

    def end(self, completion: Completion) -> bytes:
        about = {
            "finish_reason": finish_reason(completion),
            "usage": usage_json(completion),
            "model": completion.model,
            "profile": completion.profile,
            "cached": completion.cached,
        }
        return b"event: done\ndata: " + encode(about) + b"\n\n"

    def fail(self, error: Exception) -> bytes:
        return b"event: failed\ndata: " + encode({"message": public_message(error)}) + b"\n\n"
