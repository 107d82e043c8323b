"""One accumulator for the text, reasoning and tool calls of an answer, whatever the wire."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any, Protocol

from lmclient.core.completion import Chunk, FinishReason
from lmclient.core.messages import tool_call
from lmclient.core.tools import ToolCall
from lmclient.core.usage import Usage


class Splitter(Protocol):
    """Splits reasoning, and calls that stand in the text, out of it: see `lmclient.prompts.reasoning`."""

    def feed(self, text: str) -> Chunk: ...

    def finish(self) -> Chunk: ...


class Answer:
    """What has arrived of an answer. Decoders write it, providers make a `Completion` of it."""

    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    counts_input = True
    counts_output = True
    """Whether the halves of the usage are the provider's counts; else they are the least they can be."""
    counted_pieces = 0
    """How many pieces of the answer had arrived when its output was counted last."""
    cost: Decimal | None = None
    currency = "USD"
    model = ""
    id = ""
    _calls: ToolCalls | None = None

    def __init__(self, splitter: Splitter | None = None) -> None:
        self.provider_items: list[dict[str, Any]] = []
        self.metadata: dict[str, Any] = {}
        self._splitter = splitter
        self._text: list[str] = []
        self._reasoning: list[str] = []

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._reasoning)

    @property
    def pieces(self) -> int:
        """How many pieces of text and reasoning have arrived."""
        return len(self._text) + len(self._reasoning)

    def add(self, text: str, reasoning: str = "") -> Chunk | None:
        """Adds what arrived; returns it as a chunk, or None if there is nothing to show yet."""
        if self._splitter is not None and text:
            chunk = self._splitter.feed(text)
            text, reasoning = chunk.text, reasoning + chunk.reasoning
            self._take(chunk.tool_calls)
        if text:
            self._text.append(text)
        elif not reasoning:
            return None
        if reasoning:
            self._reasoning.append(reasoning)
        return Chunk(text, reasoning)

    def keep(self, name: str, said: object) -> None:
        """Keeps a word of the server's, such as the tier that served the call, in the metadata."""
        if said and isinstance(said, str):
            self.metadata[name] = said

    def end(self) -> list[Chunk]:
        """What was held back until the end: the splitter's rest, and the tool calls as a whole."""
        chunks: list[Chunk] = []
        if self._splitter is not None:
            rest, self._splitter = self._splitter.finish(), None
            self._take(rest.tool_calls)
            if (chunk := self.add(rest.text, rest.reasoning)) is not None:
                chunks.append(chunk)
        if self._calls is not None and (calls := self.tool_calls()):
            chunks.append(Chunk(tool_calls=calls))
        return chunks

    def _take(self, found: Sequence[ToolCall]) -> None:
        # Without the ids that the splitter gave: those repeat in every answer.
        for call in found:
            self.calls.add(call.id, "", call.name, call.raw_arguments)

    @property
    def calls(self) -> ToolCalls:
        """Where decoders put the tool calls, or fragments of them."""
        if self._calls is None:
            self._calls = ToolCalls()
        return self._calls

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the answer. Of an answer that was cut off, the last one is not valid."""
        if self._calls is None:
            return ()
        whole = self.finish_reason in (FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.UNKNOWN)
        return self._calls.build(self.id, cut=not whole)

    def outcome(self) -> FinishReason:
        """Why the answer ended; complete calls make it `TOOL_CALLS`, also if the server says stop."""
        reason = self.finish_reason or FinishReason.UNKNOWN
        if self._calls and reason in (FinishReason.STOP, FinishReason.UNKNOWN):
            return FinishReason.TOOL_CALLS
        return reason


class _OpenCall:
    __slots__ = ("arguments", "id", "name")

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.arguments: list[str] = []


class ToolCalls:
    """Assembles calls from fragments: interleaved by slot, without slots, or sharing one slot."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._by_slot: dict[Hashable, _OpenCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, slot: Hashable, id: str, name: str, arguments: str) -> None:
        """Adds a fragment of the call in `slot` (None: the server names no slots).

        A new id or a new name opens a new call, also in a slot that is taken: some servers put
        every call into slot 0. A fragment with neither continues the call in its slot, and one that
        holds nothing at all is no call: Snowflake sends such beside every text.
        """
        if not (id or name or arguments):
            return
        call = self._by_slot.get(slot)
        if call is None or self._opens(call, id, name):
            call = _OpenCall(id, name)
            self._calls.append(call)
            self._by_slot[slot] = call
        elif id and id == call.id and arguments == "".join(call.arguments) and _whole(arguments):
            return  # some servers end with the whole call once more
        elif name and not (call.name and call.arguments):  # a name in pieces, or once more
            call.name = name if name.startswith(call.name) else call.name + name
        if id and not call.id:
            call.id = id
        if arguments:
            call.arguments.append(arguments)

    @staticmethod
    def _opens(call: _OpenCall, id: str, name: str) -> bool:
        if id and call.id:
            return id != call.id
        if name and call.name:
            if call.id and not call.arguments:
                return False  # a call of its own would have an id as this one has
            return name != call.name or tool_call("", "", "".join(call.arguments)).arguments is not None
        return False

    def build(self, answer_id: str, *, cut: bool) -> tuple[ToolCall, ...]:
        """The calls in the order in which they began; one without an id of its own gets one of ours."""
        built = []
        taken = {""}
        for position, call in enumerate(self._calls):
            raw = "".join(call.arguments)
            id = call.id
            if id in taken:
                id = made_up_id(answer_id, position, call.name, raw)
            taken.add(id)
            parsed = tool_call(id, call.name, raw)
            if cut and position == len(self._calls) - 1 and not _whole(raw):
                parsed = ToolCall(id, call.name, None, raw)
            built.append(parsed)
        return tuple(built)


def _whole(raw: str) -> bool:
    """Whether argument text is surely not cut off: `{…}` is, empty text may not be."""
    return raw.rstrip().endswith("}")


def made_up_id(answer_id: str, position: int, name: str, arguments: str) -> str:
    """An id for a call that came without: the same for the same answer, streamed or not."""
    seed = f"{answer_id}\0{position}\0{name}\0{arguments}"
    return f"call_{hashlib.sha256(seed.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
