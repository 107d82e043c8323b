"""Answers in the shape of OpenAI's Responses.

https://platform.openai.com/docs/api-reference/responses/object
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.tools import ToolCall
from lmclient.ui.openai_answer import arguments_text, cost_json

Json = dict[str, Any]

_INCOMPLETE = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.CONTENT_FILTER: "content_filter",
}


class ResponseShape:
    """The response object of one request: `echo` is what it repeats of the request."""

    def __init__(self, model: str, echo: Json) -> None:
        self.id = f"resp_{secrets.token_hex(16)}"
        self._model = model
        self._echo = echo
        self._created = int(time.time())

    def begun(self) -> Json:
        """The response before its end."""
        return self._json("in_progress", self._model, [], None, None)

    def whole(self, completion: Completion, output: list[Json] | None = None) -> Json:
        """The response at its end; `output` are the items as they were streamed."""
        items = self._items(completion) if output is None else output
        reason = _INCOMPLETE.get(completion.finish_reason)
        return self._json(
            "completed" if reason is None else "incomplete",
            completion.model or self._model,
            items,
            _usage(completion),
            None if reason is None else {"reason": reason},
        )

    def item_id(self, prefix: str, index: int) -> str:
        """The id of an item of the output."""
        return f"{prefix}_{self.id[5:]}{index:02d}"

    def _items(self, completion: Completion) -> list[Json]:
        items: list[Json] = []
        if completion.reasoning:
            items.append(reasoning_item(self.item_id("rs", 0), completion.reasoning))
        if completion.text or not completion.tool_calls:
            status = "incomplete" if completion.finish_reason in _INCOMPLETE else "completed"
            items.append(message_item(self.item_id("msg", len(items)), completion.text, status))
        for call in completion.tool_calls:
            items.append(call_item(self.item_id("fc", len(items)), call))
        return items

    def _json(
        self, status: str, model: str, output: list[Json], usage: Json | None, incomplete: Json | None
    ) -> Json:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": incomplete,
            "model": model,
            "output": output,
            "usage": usage,
            **self._echo,
        }


def reasoning_item(id: str, text: str) -> Json:
    """The reasoning, as the summary that OpenAI's clients show."""
    return {"type": "reasoning", "id": id, "summary": [summary_part(text)]}


def summary_part(text: str) -> Json:
    """The only part of a summary."""
    return {"type": "summary_text", "text": text}


def message_item(id: str, text: str, status: str) -> Json:
    """The text."""
    return {
        "type": "message",
        "id": id,
        "status": status,
        "role": "assistant",
        "content": [text_part(text)],
    }


def text_part(text: str) -> Json:
    """The only part of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(id: str, call: ToolCall) -> Json:
    """A call of a tool."""
    return {
        "type": "function_call",
        "id": id,
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments_text(call),
        "status": "completed",
    }


def _usage(completion: Completion) -> Json:
    usage = completion.usage
    body: Json = {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    return body | cost_json(completion)
