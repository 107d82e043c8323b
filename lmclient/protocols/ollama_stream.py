"""Reads the answers of Ollama's `/api/chat`: one JSON object per line, or a single one."""

from __future__ import annotations

from typing import Any

import msgspec

from lmclient.core.completion import Chunk, FinishReason
from lmclient.core.usage import Usage
from lmclient.errors import ProtocolError, ProviderError, StreamInterruptedError
from lmclient.protocols import provider_errors
from lmclient.protocols.answer import Splitter
from lmclient.protocols.base import MAX_BODY, Decoder, as_count, as_dict, as_str, decode_json
from lmclient.protocols.sse import MAX_EVENT
from lmclient.protocols.stated_usage import StatedUsage, take_usage

Json = dict[str, Any]

FINISH_REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


class Message(msgspec.Struct):
    """What was said; untyped, since a server may send null or leave any of it out."""

    content: Any = None
    thinking: Any = None
    tool_calls: Any = None


class Line(msgspec.Struct):
    """A line of a stream, or a whole answer."""

    model: Any = None
    created_at: Any = None
    message: Message | None = None
    done: Any = None
    done_reason: Any = None
    error: Any = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    total_duration: Any = None
    load_duration: Any = None
    prompt_eval_duration: Any = None
    eval_duration: Any = None


_line = msgspec.json.Decoder(Line)
_encode = msgspec.json.Encoder().encode


class OllamaDecoder(Decoder):
    """Reads an answer, streamed or not.

    Ollama gives an answer no id. The time of its creation stands in, so that the ids that are made
    up for its tool calls are others in the next round.
    """

    def __init__(self, splitter: Splitter | None = None, *, stream: bool) -> None:
        super().__init__(splitter)
        self._stream = stream
        self._pieces: list[bytes] = []  # of the line that is not complete yet, or of the whole body
        self._size = 0
        self._calls = 0

    def _feed(self, data: bytes, chunks: list[Chunk]) -> None:
        if self.ended:
            return
        if not self._stream or b"\n" not in data:
            self._keep(data)
            return
        *lines, rest = b"".join((*self._pieces, data)).split(b"\n")
        self._pieces.clear()
        self._size = 0
        self._keep(rest)
        for line in lines:
            self._read(line, chunks)

    def _finish(self, chunks: list[Chunk]) -> None:
        rest = b"".join(self._pieces)
        try:
            self._read(rest, chunks)
        except ProtocolError:
            if not self._stream or not self.events:
                raise  # what came is no beginning of an answer
        if not self.ended:
            raise StreamInterruptedError('The answer stopped before its end, without "done".')

    def _keep(self, data: bytes) -> None:
        if data:
            self._pieces.append(data)
        self._size += len(data)
        limit = MAX_EVENT if self._stream else MAX_BODY
        if self._size > limit:
            raise ProtocolError(f"The server sent a line of more than {limit >> 20} MiB.")

    def _read(self, data: bytes, chunks: list[Chunk]) -> None:
        if self.ended or not data.strip():
            return
        line = decode_json(_line, data, "a line")
        self.events += 1
        if line.error is not None:
            raise _error(line.error)
        if line.message is None and line.done is None:
            raise ProtocolError(f"The server's answer has no message: {data[:80]!r}")
        if not self.answer.id:
            self.answer.id = as_str(line.created_at)
            self.answer.model = as_str(line.model)
        if line.message is not None and (chunk := self._read_message(line.message)) is not None:
            chunks.append(chunk)
        if line.done is True:
            self._end(line)

    def _read_message(self, message: Message) -> Chunk | None:
        for call in message.tool_calls if isinstance(message.tool_calls, list) else ():
            function = as_dict(as_dict(call).get("function"))
            arguments = function.get("arguments")
            if arguments is not None and not isinstance(arguments, str):
                arguments = _encode(arguments).decode()
            self._calls += 1  # calls come whole: each has a slot of its own
            self.answer.calls.add(
                self._calls, as_str(as_dict(call).get("id")), as_str(function.get("name")), as_str(arguments)
            )
        text, thinking = as_str(message.content), as_str(message.thinking)
        return self.answer.add(text, thinking) if text or thinking else None

    def _end(self, line: Line) -> None:
        self.ended = True
        reason = FINISH_REASONS.get(as_str(line.done_reason))
        if reason is None and line.done_reason:
            self.answer.metadata["finish_reason"] = line.done_reason
            reason = FinishReason.STOP
        self.answer.finish_reason = reason or FinishReason.UNKNOWN
        prompt, output = as_count(line.prompt_eval_count), as_count(line.eval_count)
        if prompt is not None or output is not None:
            said = msgspec.structs.asdict(line)
            details = {name: said[name] for name in _DURATIONS if said[name] is not None}
            usage = Usage(input_tokens=prompt or 0, output_tokens=output or 0, details=details)
            take_usage(self.answer, StatedUsage(usage, prompt is not None, output is not None))


def _error(error: object) -> ProviderError:
    """An error inside a successful response: the model's runner failed, whatever it says."""
    if isinstance(error, dict):
        return provider_errors.error_from_object(error)
    return provider_errors.error_from_object({"message": str(error), "type": "server_error"})
