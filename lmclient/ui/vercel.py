"""A stream in the AI SDK's UI message stream protocol, version 1: what `useChat` reads.

https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.stream import AsyncCompletionStream
from lmclient.core.tools import ToolCall
from lmclient.ui.events import SSE_HEADERS, event, events, public_message
from lmclient.ui.openai_answer import usage_json
from lmclient.ui.parts import Kind, PartWriter

VERCEL_UI_HEADERS = {**SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
"""The headers of such an answer; the AI SDK asks for the last one."""

_DONE = b"data: [DONE]\n\n"
_FINISH = {
    FinishReason.CONTENT_FILTER: "content-filter",
    FinishReason.TOOL_CALLS: "tool-calls",
    FinishReason.UNKNOWN: "other",
}


def vercel_ui_stream(
    stream: AsyncCompletionStream, *, message_id: str | None = None
) -> AsyncGenerator[bytes, None]:
    """The answer as one message of one step; send it with `VERCEL_UI_HEADERS`.

    `message_id` is a new one if not given. The message's metadata at its end hold `usage` (with the
    cost), `model`, `profile` and `cached`. Tools are left to the page: their calls have no output.
    """
    return events(stream, VercelWriter(message_id or f"msg-{secrets.token_hex(12)}"))


class VercelWriter(PartWriter):
    """Writes the parts of one message."""

    def __init__(self, message_id: str) -> None:
        super().__init__()
        self._message_id = message_id

    def begin(self) -> bytes:
        return event({"type": "start", "messageId": self._message_id}) + event({"type": "start-step"})

    def start(self, kind: Kind) -> bytes:
        return event({"type": f"{kind}-start", "id": self._id(kind)})

    def grow(self, kind: Kind, text: str) -> bytes:
        return event({"type": f"{kind}-delta", "id": self._id(kind), "delta": text})

    def finish(self, kind: Kind) -> bytes:
        return event({"type": f"{kind}-end", "id": self._id(kind)})

    def tool_call(self, call: ToolCall) -> bytes:
        about = {"toolCallId": call.id, "toolName": call.name}
        if call.arguments is None:
            problem = "The arguments are no JSON object."
            return event(
                {"type": "tool-input-error", **about, "input": call.raw_arguments, "errorText": problem}
            )
        return event({"type": "tool-input-available", **about, "input": call.arguments})

    def end(self, completion: Completion) -> bytes:
        metadata = {
            "usage": usage_json(completion),
            "model": completion.model,
            "profile": completion.profile,
            "cached": completion.cached,
        }
        reason = _FINISH.get(completion.finish_reason, completion.finish_reason.value)
        finish = {"type": "finish", "finishReason": reason, "messageMetadata": metadata}
        return self.close() + event({"type": "finish-step"}) + event(finish) + _DONE

    def fail(self, error: Exception) -> bytes:
        return self.close() + event({"type": "error", "errorText": public_message(error)}) + _DONE

    def _id(self, kind: Kind) -> str:
        return f"{kind}-{self.part}"
