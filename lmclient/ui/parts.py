"""Answers as parts that begin and end: what the protocols of user interfaces have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

from lmclient.core.completion import Chunk
from lmclient.core.tools import ToolCall

Kind = Literal["text", "reasoning"]


class PartWriter(ABC):
    """Writes chunks as parts of text and reasoning: each begins, grows, and ends before the next.

    `part` numbers them, from 1.
    """

    def __init__(self) -> None:
        self.part = 0
        self._open: Kind | None = None

    def chunks(self, batch: Sequence[Chunk]) -> bytes:
        pieces: list[bytes] = []
        for chunk in batch:
            if chunk.reasoning:
                self._turn_to("reasoning", pieces)
                pieces.append(self.grow("reasoning", chunk.reasoning))
            if chunk.text:
                self._turn_to("text", pieces)
                pieces.append(self.grow("text", chunk.text))
            for call in chunk.tool_calls:
                pieces += (self.close(), self.tool_call(call))
        return b"".join(pieces)

    def close(self) -> bytes:
        """Ends the part that is open, if one is."""
        kind, self._open = self._open, None
        return b"" if kind is None else self.finish(kind)

    @abstractmethod
    def start(self, kind: Kind) -> bytes:
        """The beginning of part number `part`."""

    @abstractmethod
    def grow(self, kind: Kind, text: str) -> bytes:
        """More text of the part."""

    @abstractmethod
    def finish(self, kind: Kind) -> bytes:
        """The end of the part."""

    @abstractmethod
    def tool_call(self, call: ToolCall) -> bytes:
        """A whole call of a tool."""

    def _turn_to(self, kind: Kind, pieces: list[bytes]) -> None:
        if self._open != kind:
            pieces.append(self.close())
            self.part += 1
            self._open = kind
            pieces.append(self.start(kind))
