"""Reads the answers of Anthropic's Messages API, streamed or not.

https://docs.anthropic.com/en/docs/build-with-claude/streaming. An answer is a list of blocks; an
event opens one, adds to it or closes it. Unknown events, blocks and deltas are passed over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lmclient.core.completion import Chunk, FinishReason
from lmclient.core.usage import Usage
from lmclient.errors import ProtocolError, ProviderError
from lmclient.protocols import provider_errors
from lmclient.protocols.answer import Splitter
from lmclient.protocols.anthropic_messages import WHOLE_CONTENT
from lmclient.protocols.base import SSEDecoder, as_count, as_dict, as_int, as_str, decode_json
from lmclient.protocols.stated_usage import StatedUsage, read_cost, take_usage

Json = dict[str, Any]

FINISH_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "pause_turn": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.CONTENT_FILTER,
}
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_COUNTED = (*_INPUT, "output_tokens")
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class Event(msgspec.Struct):
    """An event of a stream, or a whole answer. Of the fields, each type has some."""

    type: Any = None
    index: Any = None
    delta: Any = None
    message: Any = None
    content_block: Any = None
    usage: Any = None
    error: Any = None
    request_id: Any = None


_event = msgspec.json.Decoder(Event)
_json = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class Block:
    """A block of the answer, with the pieces of its fields that have arrived."""

    __slots__ = ("closed", "pieces", "start", "type")

    def __init__(self, start: Json) -> None:
        self.start = start
        self.type = as_str(start.get("type"))
        self.closed = False
        self.pieces: dict[str, list[str]] = {}

    def add(self, field: str, piece: str) -> None:
        """Adds to a text field, or to the JSON of `input`."""
        self.pieces.setdefault(field, []).append(piece)

    def content(self) -> Json:
        """The block as the API would have sent it without a stream."""
        block = dict(self.start)
        for field, pieces in self.pieces.items():
            text = "".join(pieces)
            block[field] = _parsed(text) if field == "input" else as_str(block.get(field)) + text
        return block


class AnthropicDecoder(SSEDecoder):
    """Reads a message, streamed or not."""

    def __init__(self, splitter: Splitter | None = None) -> None:
        super().__init__(splitter)
        self._blocks: dict[int, Block] = {}
        self._usage: Json = {}

    def read_event(self, name: bytes, data: bytes) -> Chunk | None:
        event = decode_json(_event, data, "an event")
        match event.type:
            case "content_block_delta":
                return self._read_delta(event.index, as_dict(event.delta))
            case "content_block_start":
                return self._open(event.index, as_dict(event.content_block))
            case "content_block_stop":
                self._close(event.index)
            case "message_start":
                self._read_head(as_dict(event.message))
                self.answer.counts_output = False  # it says 1 or so; the output is counted at the end
            case "message_delta":
                self._read_stop(as_dict(event.delta))
                self._add_usage(event.usage)
            case "message_stop":
                self.ended = True
            case "ping":
                self.events -= 1  # a heartbeat of the server, no sign of life of the model
            case "error":
                raise self._error(event)
        return None

    def read_body(self, data: bytes) -> Chunk | None:
        message = as_dict(decode_json(_json, data, "an answer"))
        if message.get("error") is not None:
            raise self._error(Event(error=message["error"], request_id=message.get("request_id")))
        if not isinstance(message.get("content"), list):
            raise ProtocolError(f"The server's answer has no content: {data[:80]!r}")
        self._read_head(message)
        self._read_stop(message)
        content = [as_dict(block) for block in message["content"]]
        self._blocks = {index: Block(block) for index, block in enumerate(content)}
        cut = self.answer.finish_reason is FinishReason.LENGTH
        for index, block in enumerate(content):
            if block.get("type") == "tool_use":
                self._read_call(index, block, cut=cut and index == len(content) - 1)
        self.ended = True
        text, thinking = (
            "".join(as_str(block.get(kind)) for block in content if block.get("type") == kind)
            for kind in ("text", "thinking")
        )
        return self.answer.add(text, thinking)

    def complete(self) -> bool:
        # The reason comes after all content: what may still be missing then is the message_stop alone.
        return self.ended or self.answer.finish_reason is not None

    def _finish(self, chunks: list[Chunk]) -> None:
        super()._finish(chunks)
        content = [block.content() for block in self._blocks.values()]
        self.answer.provider_items += wanted_back(content)
        citations = [one for block in content for one in block.get("citations") or ()]
        if citations:
            self.answer.metadata["citations"] = citations

    def _read_head(self, message: Json) -> None:
        self.answer.id = as_str(message.get("id"))
        self.answer.model = as_str(message.get("model"))
        self._add_usage(message.get("usage"))

    def _read_stop(self, said: Json) -> None:
        """Takes why the answer ended. A reason without a meaning here is kept in the metadata."""
        reason, metadata = said.get("stop_reason"), self.answer.metadata
        if reason is None:
            return
        self.answer.finish_reason = FINISH_REASONS.get(as_str(reason), FinishReason.STOP)
        if reason not in FINISH_REASONS or reason == "pause_turn":
            metadata["finish_reason"] = reason
        for field in ("stop_sequence", "stop_details"):
            if said.get(field) is not None:
                metadata[field] = said[field]

    def _add_usage(self, said: object) -> None:
        """Takes counts: later ones replace earlier ones, they are never summed up.

        Compatible servers state an input of 0 once more at the end, which wipes nothing; an input that is
        stated counts with all its parts.
        """
        counts, usage = as_dict(said), self._usage
        if not counts:
            return
        states_input = any(counts.get(key) for key in _INPUT)
        written = counts.get("cache_creation_input_tokens")
        if written is not None and written != usage.get("cache_creation_input_tokens"):
            usage.pop("cache_creation", None)  # the parts of another sum
        usage |= {
            key: value
            for key, value in counts.items()
            if value is not None and (states_input or key not in _INPUT or not usage.get(key))
        }
        stated = read_usage(usage)
        if stated is not None and counts.get("output_tokens") is None:
            stated = stated._replace(counts_output=False)
        take_usage(self.answer, stated, read_cost(counts))
        for term in ("service_tier", "speed"):
            self.answer.keep(term, usage.get(term))

    def _open(self, index: object, start: Json) -> Chunk | None:
        if not isinstance(index, int):
            raise ProtocolError(f"The server opened a block without an index: {start!r:.80}")
        block = self._blocks[index] = Block(start)
        if block.type == "tool_use":
            self.answer.calls.add(index, as_str(start.get("id")), as_str(start.get("name")), "")
        text = as_str(start.get("text")) if block.type == "text" else ""
        thinking = as_str(start.get("thinking")) if block.type == "thinking" else ""
        return self.answer.add(text, thinking) if text or thinking else None

    def _read_delta(self, index: object, delta: Json) -> Chunk | None:
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None:
            raise ProtocolError(f"The server adds to block {index!r}, which it has not opened.")
        kind = delta.get("type")
        if kind == "input_json_delta":
            piece = as_str(delta.get("partial_json"))
            block.add("input", piece)
            if block.type == "tool_use":
                self.answer.calls.add(index, "", "", piece)
        elif kind == "citations_delta":
            block.start["citations"] = [*(block.start.get("citations") or ()), delta.get("citation")]
        elif field := _GROWING.get(as_str(kind)):
            piece = as_str(delta.get(field))
            block.add(field, piece)
            if field == "text":
                return self.answer.add(piece)
            if field == "thinking" and piece:
                return self.answer.add("", piece)
        return None

    def _close(self, index: object) -> None:
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None or block.closed:
            return
        block.closed = True
        if block.type == "tool_use" and not any(block.pieces.get("input", ())):
            start = as_dict(block.start.get("input"))
            if start:  # compatible servers may send the whole input with the start
                self.answer.calls.add(index, "", "", _encode(start).decode())

    def _read_call(self, index: int, block: Json, *, cut: bool) -> None:
        """Takes a call that came whole. One that was cut by the token limit has lost its end."""
        arguments = _encode(block.get("input", {})).decode()
        if cut:  # the API closes the object that was cut; what it says is not what the model meant
            arguments = arguments.removesuffix("}")
        self.answer.calls.add(index, as_str(block.get("id")), as_str(block.get("name")), arguments)

    def _error(self, event: Event) -> ProviderError:
        said = event.error if isinstance(event.error, dict) else {"message": as_str(event.error)}
        error = provider_errors.error_from_object(said)
        error.request_id = as_str(event.request_id) or None
        return error


def wanted_back(content: list[Json]) -> list[Json]:
    """The provider items of an answer: what of its blocks the API wants back in the next turn."""
    kinds = [block.get("type") for block in content]
    lead = 0
    while lead < len(kinds) and kinds[lead] in ("thinking", "redacted_thinking"):
        lead += 1
    texts = kinds[lead:].count("text")
    if kinds[lead:] == ["text"] * texts + ["tool_use"] * (len(kinds) - lead - texts):
        return content[:lead]
    return [{"type": WHOLE_CONTENT, "content": content}]


def read_usage(usage: Json) -> StatedUsage | None:
    """The usage. `input_tokens` of the API leaves out what was read from or written to the cache."""
    rest, output = as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens"))
    if rest is None and output is None:
        return None
    lasting = as_dict(usage.get("cache_creation"))
    written_1h = as_int(lasting.get("ephemeral_1h_input_tokens"))
    read, written = as_int(usage.get(_INPUT[1])), as_int(usage.get(_INPUT[2]))
    written = max(written, as_int(lasting.get("ephemeral_5m_input_tokens")) + written_1h)
    counted = Usage(
        input_tokens=(rest or 0) + read + written,
        cached_input_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=written_1h,
        output_tokens=output or 0,
        reasoning_tokens=as_int(as_dict(usage.get("output_tokens_details")).get("thinking_tokens")),
        details={key: value for key, value in usage.items() if key not in _COUNTED and value is not None},
    )
    return StatedUsage(counted, rest is not None, output is not None)


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text.strip() else {}
    except (msgspec.DecodeError, UnicodeError):
        return {}
