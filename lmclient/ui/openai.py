"""A stream as the chunks of OpenAI's chat completions.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Sequence

from lmclient.core.completion import Chunk, Completion
from lmclient.core.stream import AsyncCompletionStream
from lmclient.ui.events import encode, event, events
from lmclient.ui.openai_answer import call_json, finish_reason, usage_json
from lmclient.ui.openai_errors import OpenAIError

DONE = b"data: [DONE]\n\n"


def openai_sse(
    stream: AsyncCompletionStream, *, model: str = "lmclient", include_usage: bool = False
) -> AsyncGenerator[bytes, None]:
    """The answer as `chat.completion.chunk` events, ended by `[DONE]`.

    `model` is the name that the chunks carry. With `include_usage` the last chunk has no choices but
    the usage, `cost` included, and under `lmclient` what the answer's headers would say. An error is
    an event `{"error": {...}}`, after which nothing follows.
    """
    return events(stream, ChatWriter(model, include_usage))


class ChatWriter:
    """Writes the chunks of one chat completion."""

    def __init__(self, model: str, include_usage: bool) -> None:
        head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }
        # All but the delta is the same in every chunk; encoding it once is most of the speed.
        self._head = b"data: " + encode(head)[:-1]
        self._before = self._head + b',"choices":[{"index":0,"delta":'
        self._text = self._before + b'{"content":'
        self._reasoning = self._before + b'{"reasoning_content":'
        self._include_usage = include_usage
        self._calls = 0

    def begin(self) -> bytes:
        return self._before + b'{"role":"assistant","content":""}' + _NOT_FINISHED

    def chunks(self, batch: Sequence[Chunk]) -> bytes:
        pieces: list[bytes] = []
        for chunk in batch:
            if chunk.reasoning:
                pieces += (self._reasoning, encode(chunk.reasoning), _TEXT_ENDS)
            if chunk.text:
                pieces += (self._text, encode(chunk.text), _TEXT_ENDS)
            if chunk.tool_calls:
                pieces.append(self._tool_calls(chunk))
        return b"".join(pieces)

    def end(self, completion: Completion) -> bytes:
        finish = b'{},"logprobs":null,"finish_reason":' + encode(finish_reason(completion)) + b"}]}\n\n"
        return self._before + finish + (self._usage(completion) if self._include_usage else b"") + DONE

    def fail(self, error: Exception) -> bytes:
        return event(OpenAIError(error).body)

    def _tool_calls(self, chunk: Chunk) -> bytes:
        calls = [{"index": self._calls + i, **call_json(call)} for i, call in enumerate(chunk.tool_calls)]
        self._calls += len(calls)
        return self._before + encode({"tool_calls": calls}) + _NOT_FINISHED

    def _usage(self, completion: Completion) -> bytes:
        usage = encode(usage_json(completion))
        about = encode({"profile": completion.profile, "cached": completion.cached})
        return self._head + b',"choices":[],"usage":' + usage + b',"lmclient":' + about + b"}\n\n"


_NOT_FINISHED = b',"logprobs":null,"finish_reason":null}]}\n\n'
_TEXT_ENDS = b"}" + _NOT_FINISHED
