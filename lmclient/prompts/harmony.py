"""The answers of gpt-oss: messages in channels, as the harmony response format has them.

https://cookbook.openai.com/articles/openai-harmony. An answer continues the prompt's
`<|start|>assistant`: `<|channel|>analysis<|message|>…<|end|>`, then further messages. `analysis` is
reasoning; `final`, and `commentary` without a recipient, are text; a message to a recipient
(`to=functions.weather`) is a tool call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lmclient.core.completion import Chunk
from lmclient.core.messages import tool_call
from lmclient.core.tools import ToolCall
from lmclient.prompts.reasoning import TrimmedText
from lmclient.prompts.stops import StopCutter, partial_suffix

_BODY = "<|message|>"
_HEADER_STARTS = ("<|start|>", "<|channel|>", _BODY, "to=")
_BODY_ENDS = ("<|end|>", "<|start|>")
_BODY_END = re.compile("|".join(map(re.escape, _BODY_ENDS)))
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_HEADER_LIMIT = 1000
"""Characters; a longer header is none, but text of a model that lost the format."""


class HarmonyParser:
    """Splits an answer in harmony format. `prompt_end` is the end of the prompt that was sent."""

    def __init__(self, stops: Iterable[str] = (), *, prompt_end: str = "") -> None:
        self._cutter = StopCutter(stops)
        self._text = TrimmedText()
        self._reasoning = TrimmedText()
        self._channel: TrimmedText | None = None  # of the message's body; None before it begins
        self._in_header = False
        self._recipient = ""
        self._arguments: list[str] = []
        self._calls = 0
        self._held = ""
        if prompt_end.endswith(_BODY):
            self._open_body(prompt_end[prompt_end.rfind("<|start|>") :])

    def feed(self, piece: str) -> Chunk:
        """What is certain now that `piece` has arrived."""
        piece = self._cutter.feed(piece)
        if self._held or self._channel is None or self._recipient or "<" in piece:
            return self._split(piece)
        piece = self._channel.add(piece)
        return Chunk("", piece) if self._channel is self._reasoning else Chunk(piece)

    def finish(self) -> Chunk:
        """What was held back, and the tool call that the answer ends in."""
        answer = _Parts()
        self._read(self._held + self._cutter.finish(), answer)
        held, self._held = self._held, ""
        if self._channel is None and not self._in_header:
            self._channel = self._text
        if self._channel is not None:
            self._add(held, answer)
            self._close_body(answer)
        return answer.chunk()

    def _split(self, piece: str) -> Chunk:
        answer = _Parts()
        self._read(self._held + piece, answer)
        return answer.chunk()

    def _read(self, buffer: str, answer: _Parts) -> None:
        rest: str | None = buffer
        while rest is not None:
            self._held = rest
            if self._channel is not None:
                rest = self._read_body(rest, answer)
            elif self._in_header:
                rest = self._read_header(rest)
            else:
                rest = self._read_start(rest)

    # Each of the three returns what is left to read, or None when it needs more; what it needs
    # more of is then in `_held`.

    def _read_start(self, buffer: str) -> str | None:
        start = buffer.lstrip()
        if start.startswith(_HEADER_STARTS):
            self._in_header = True
            return start
        if any(marker.startswith(start) for marker in _HEADER_STARTS):
            return None
        self._open_body("")
        return buffer

    def _read_header(self, buffer: str) -> str | None:
        at = buffer.find(_BODY, 0, _HEADER_LIMIT + len(_BODY))
        if at < 0 and len(buffer) < _HEADER_LIMIT + len(_BODY):
            return None
        self._in_header = False
        if at < 0:
            self._open_body("")
            return buffer.removeprefix("<|start|>")
        self._open_body(buffer[:at])
        return buffer[at + len(_BODY) :]

    def _read_body(self, buffer: str, answer: _Parts) -> str | None:
        end = _BODY_END.search(buffer)
        if end is None:
            certain = len(buffer) - max(partial_suffix(buffer, marker) for marker in _BODY_ENDS)
            self._add(buffer[:certain], answer)
            self._held = buffer[certain:]
            return None
        self._add(buffer[: end.start()], answer)
        self._close_body(answer)
        return buffer[end.end() if end[0] == "<|end|>" else end.start() :]

    def _open_body(self, header: str) -> None:
        channel = _CHANNEL.search(header)
        recipient = _RECIPIENT.search(header)
        self._recipient = recipient[1].removeprefix("functions.") if recipient else ""
        self._channel = self._reasoning if channel and channel[1] == "analysis" else self._text
        if not self._recipient:
            self._channel.separate()

    def _add(self, piece: str, answer: _Parts) -> None:
        if self._recipient:
            self._arguments.append(piece)
        elif self._channel is self._reasoning:
            answer.reasoning.append(self._reasoning.add(piece))
        else:
            answer.text.append(self._text.add(piece))

    def _close_body(self, answer: _Parts) -> None:
        if self._recipient:
            answer.calls.append(
                tool_call(f"call_{self._calls}", self._recipient, "".join(self._arguments).strip())
            )
            self._calls += 1
            self._arguments.clear()
            self._recipient = ""
        self._channel = None


class _Parts:
    """What one step found."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []

    def chunk(self) -> Chunk:
        return Chunk("".join(self.text), "".join(self.reasoning), tuple(self.calls))
