"""A stream as events of the Agent User Interaction Protocol (AG-UI), version 1.

https://docs.ag-ui.com/concepts/events
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from typing import Any

from lmclient.core.completion import Completion
from lmclient.core.stream import AsyncCompletionStream
from lmclient.core.tools import ToolCall
from lmclient.ui.events import event, events
from lmclient.ui.openai_answer import arguments_text, cost_json, finish_reason
from lmclient.ui.openai_errors import OpenAIError
from lmclient.ui.parts import Kind, PartWriter


def ag_ui_events(
    stream: AsyncCompletionStream, *, thread_id: str | None = None, run_id: str | None = None
) -> AsyncGenerator[bytes, None]:
    """The answer as one run; send it with `SSE_HEADERS`.

    `thread_id` and `run_id` are those of the `RunAgentInput`, new ones if not given. The run's end has
    the usage, and in its `result` what there is no field for, such as the cost. Tools are left to the
    application: their calls have no result.
    """
    return events(stream, AgUiWriter(thread_id or secrets.token_hex(12), run_id or secrets.token_hex(12)))


class AgUiWriter(PartWriter):
    """Writes the events of one run."""

    def __init__(self, thread_id: str, run_id: str) -> None:
        super().__init__()
        self._run = {"threadId": thread_id, "runId": run_id}
        self._run_id = run_id

    def begin(self) -> bytes:
        return event({"type": "RUN_STARTED", **self._run})

    def start(self, kind: Kind) -> bytes:
        if kind == "text":
            return self._about_part("TEXT_MESSAGE_START", role="assistant")
        return self._about_part("REASONING_START") + self._about_part(
            "REASONING_MESSAGE_START", role="reasoning"
        )

    def grow(self, kind: Kind, text: str) -> bytes:
        name = "TEXT_MESSAGE_CONTENT" if kind == "text" else "REASONING_MESSAGE_CONTENT"
        return self._about_part(name, delta=text)

    def finish(self, kind: Kind) -> bytes:
        if kind == "text":
            return self._about_part("TEXT_MESSAGE_END")
        return self._about_part("REASONING_MESSAGE_END") + self._about_part("REASONING_END")

    def tool_call(self, call: ToolCall) -> bytes:
        id = {"toolCallId": call.id}
        return (
            event({"type": "TOOL_CALL_START", **id, "toolCallName": call.name})
            + event({"type": "TOOL_CALL_ARGS", **id, "delta": arguments_text(call)})
            + event({"type": "TOOL_CALL_END", **id})
        )

    def end(self, completion: Completion) -> bytes:
        result = {
            "finishReason": finish_reason(completion),
            "profile": completion.profile,
            "cached": completion.cached,
            **cost_json(completion),
        }
        outcome: dict[str, Any] = {"type": "success"}
        if completion.tool_calls:
            outcome["pendingToolCallIds"] = [call.id for call in completion.tool_calls]
        finished = {**self._run, "result": result, "outcome": outcome, "usage": [_usage(completion)]}
        return self.close() + event({"type": "RUN_FINISHED", **finished})

    def fail(self, error: Exception) -> bytes:
        problem = OpenAIError(error).body["error"]
        code = problem["code"] or problem["type"]
        return self.close() + event({"type": "RUN_ERROR", "message": problem["message"], "code": code})

    def _about_part(self, type: str, **fields: str) -> bytes:
        return event({"type": type, "messageId": f"{self._run_id}-{self.part}", **fields})


def _usage(completion: Completion) -> dict[str, Any]:
    usage = completion.usage
    return {
        "model": completion.model,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }
