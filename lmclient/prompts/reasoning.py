"""Reasoning and text of an answer, split while it arrives.

A parser takes the answer in pieces, cut anywhere, and returns what is certain as a `Chunk`; what
may still turn out to be the beginning of a marker or of a stop string waits for the next piece,
and so does whitespace that may turn out to be the end. All pieces together give the same text and
reasoning as the whole answer at once, both without whitespace around them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from lmclient.core.completion import Chunk
from lmclient.prompts.stops import StopCutter, partial_suffix

BLOCK_SEPARATOR = "\n\n"
"""Stands between two blocks of reasoning of one answer."""


class AnswerParser(Protocol):
    """Splits one answer; not to be shared between answers."""

    def feed(self, piece: str) -> Chunk:
        """What is certain now that `piece` has arrived; may be empty."""
        ...

    def finish(self) -> Chunk:
        """The rest, at the end of the answer. To be called once."""
        ...


class PlainParser:
    """For answers without reasoning: the text as it is, up to a stop string."""

    def __init__(self, stops: Iterable[str] = ()) -> None:
        self._cutter = StopCutter(stops)

    def feed(self, piece: str) -> Chunk:
        """The text that is certain."""
        return Chunk(self._cutter.feed(piece))

    def finish(self) -> Chunk:
        """The text that was held back."""
        return Chunk(self._cutter.finish())


class TagParser:
    """For reasoning between an opening and a closing marker.

    `inside` tells that the prompt already opened the reasoning. A closing marker that never comes
    leaves everything in the reasoning. Blocks may stand anywhere in the text. A marker that only
    repeats the state (the model opens again what the prompt has opened) is dropped at the
    beginning of a block; further on it is plain text.
    """

    def __init__(
        self, opening: str, closing: str, *, inside: bool = False, stops: Iterable[str] = ()
    ) -> None:
        self._opening = opening
        self._closing = closing
        self._cutter = StopCutter(stops)
        self._text = TrimmedText()
        self._reasoning = TrimmedText()
        self._held = ""
        self._enter(inside)

    def feed(self, piece: str) -> Chunk:
        """What is certain now that `piece` has arrived."""
        piece = self._cutter.feed(piece)
        if self._fresh or self._held or self._first in piece:
            return self._split(piece)
        channel = self._channel
        if channel.gap or piece[-1:].isspace():
            piece = channel.add(piece)
        return Chunk("", piece) if self._inside else Chunk(piece)

    def finish(self) -> Chunk:
        """What was held back, now that no marker can follow."""
        chunk = self._split(self._cutter.finish())
        rest, self._held = self._channel.add(self._held), ""
        if self._inside:
            return Chunk(chunk.text, chunk.reasoning + rest)
        return Chunk(chunk.text + rest, chunk.reasoning)

    def _enter(self, inside: bool) -> None:
        self._inside = inside
        self._fresh = True  # nothing but whitespace since the block began
        self._awaited, self._repeated = (
            (self._closing, self._opening) if inside else (self._opening, self._closing)
        )
        self._first = self._awaited[0]
        self._channel = self._reasoning if inside else self._text
        if inside:
            self._reasoning.separate()

    def _split(self, piece: str) -> Chunk:
        buffer = self._held + piece
        text: list[str] = []
        reasoning: list[str] = []
        while True:
            if self._fresh and (rest := buffer.lstrip()).startswith(self._repeated):
                self._channel.add(buffer[: len(buffer) - len(rest)])
                buffer = rest[len(self._repeated) :]
                continue
            at = buffer.find(self._awaited)
            certain = at if at >= 0 else len(buffer) - self._uncertain(buffer)
            shown = self._channel.add(buffer[:certain])
            (reasoning if self._inside else text).append(shown)
            if at < 0:
                break
            buffer = buffer[at + len(self._awaited) :]
            self._enter(not self._inside)
        self._held = buffer[certain:]
        if buffer[:certain].strip():
            self._fresh = False
        return Chunk("".join(text), "".join(reasoning))

    def _uncertain(self, buffer: str) -> int:
        """How many characters at the end may belong to a marker."""
        if self._fresh and self._repeated.startswith(rest := buffer.lstrip()):
            return len(rest)
        return partial_suffix(buffer, self._awaited)


class TrimmedText:
    """Text that arrives in pieces, without the whitespace around the whole.

    `gap` is whitespace that waits for more text. Once text has come (`started`) and while there is
    no gap, a piece that does not end in whitespace needs no `add`.
    """

    def __init__(self) -> None:
        self.started = False
        self.gap = ""

    def add(self, piece: str) -> str:
        """`piece` without the whitespace that may turn out to stand at the beginning or the end."""
        if not self.started:
            piece = piece.lstrip()
        kept = piece.rstrip()
        if not kept:
            if self.started:
                self.gap += piece
            return ""
        self.started = True
        shown = self.gap + kept
        self.gap = piece[len(kept) :]
        return shown

    def separate(self) -> None:
        """Sets off what follows from what there is, as a new block."""
        if self.started:
            self.gap = BLOCK_SEPARATOR


def tag_splitter(tag: str) -> TagParser:
    """A parser that splits `<tag>…</tag>` out of a text: the `reasoning_tags` of a profile."""
    return TagParser(f"<{tag}>", f"</{tag}>")
