"""A stream as the events of OpenAI's Responses.

https://platform.openai.com/docs/api-reference/responses-streaming: every item of the output is added,
grows and is done before the next one; `sequence_number` counts the events.
"""

from __future__ import annotations

from typing import Any

from lmclient.core.completion import Completion
from lmclient.core.tools import ToolCall
from lmclient.server.responses_answer import (
    ResponseShape,
    call_item,
    message_item,
    reasoning_item,
    summary_part,
    text_part,
)
from lmclient.ui.events import encode
from lmclient.ui.openai_errors import OpenAIError
from lmclient.ui.parts import Kind, PartWriter

Json = dict[str, Any]


class ResponsesWriter(PartWriter):
    """Writes the events of one response."""

    def __init__(self, shape: ResponseShape) -> None:
        super().__init__()
        self._shape = shape
        self._number = 0
        self._output: list[Json] = []
        self._id = ""
        self._text: list[str] = []

    def begin(self) -> bytes:
        begun = self._shape.begun()
        return self._event("response.created", response=begun) + self._event(
            "response.in_progress", response=begun
        )

    def start(self, kind: Kind) -> bytes:
        self._text = []
        if kind == "text":
            self._id = self._new_id("msg")
            item = message_item(self._id, "", "in_progress") | {"content": []}
            return self._added(item) + self._in_text("response.content_part.added", part=text_part(""))
        self._id = self._new_id("rs")
        item = reasoning_item(self._id, "") | {"summary": []}
        return self._added(item) + self._in_summary(
            "response.reasoning_summary_part.added", part=summary_part("")
        )

    def grow(self, kind: Kind, text: str) -> bytes:
        self._text.append(text)
        if kind == "text":
            return self._in_text("response.output_text.delta", delta=text, logprobs=[])
        return self._in_summary("response.reasoning_summary_text.delta", delta=text)

    def finish(self, kind: Kind) -> bytes:
        text = "".join(self._text)
        if kind == "text":
            return (
                self._in_text("response.output_text.done", text=text, logprobs=[])
                + self._in_text("response.content_part.done", part=text_part(text))
                + self._done(message_item(self._id, text, "completed"))
            )
        return (
            self._in_summary("response.reasoning_summary_text.done", text=text)
            + self._in_summary("response.reasoning_summary_part.done", part=summary_part(text))
            + self._done(reasoning_item(self._id, text))
        )

    def tool_call(self, call: ToolCall) -> bytes:
        item = call_item(self._new_id("fc"), call)
        about = {"item_id": item["id"], "output_index": len(self._output)}
        arguments = item["arguments"]
        return (
            self._added(item | {"arguments": "", "status": "in_progress"})
            + self._event("response.function_call_arguments.delta", **about, delta=arguments)
            + self._event(
                "response.function_call_arguments.done", **about, name=call.name, arguments=arguments
            )
            + self._done(item)
        )

    def end(self, completion: Completion) -> bytes:
        last = self.close()
        if not self._output:  # an answer without any text is still a message
            self.part += 1
            last = self.start("text") + self.finish("text")
        response = self._shape.whole(completion, self._output)
        return last + self._event(f"response.{response['status']}", response=response)

    def fail(self, error: Exception) -> bytes:
        problem = OpenAIError(error).body["error"]
        # Flat says the reference, nested is what OpenAI's own clients raise an error for.
        flat = {"code": problem["code"], "message": problem["message"], "param": None}
        return self._event("error", **flat, error=problem)

    def _new_id(self, prefix: str) -> str:
        return self._shape.item_id(prefix, len(self._output))

    def _added(self, item: Json) -> bytes:
        return self._event("response.output_item.added", output_index=len(self._output), item=item)

    def _done(self, item: Json) -> bytes:
        self._output.append(item)
        return self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _in_text(self, name: str, **fields: Any) -> bytes:
        return self._event(name, item_id=self._id, output_index=len(self._output), content_index=0, **fields)

    def _in_summary(self, name: str, **fields: Any) -> bytes:
        return self._event(name, item_id=self._id, output_index=len(self._output), summary_index=0, **fields)

    def _event(self, name: str, /, **fields: Any) -> bytes:
        data = {"type": name, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: " + name.encode() + b"\ndata: " + encode(data) + b"\n\n"
