"""What a model or a server wrote, made safe for a terminal: no control characters, no escape sequences.

The sequences are those of ECMA-48 (5.4 control sequences, 5.6 control strings) and ECMA-35.
"""

from __future__ import annotations

import re

_CONTROL_SEQUENCE = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_CONTROL_STRING = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
_ESCAPE_SEQUENCE = r"\x1b[ -/]*[0-OQ-WYZ\\`-~]"
_SEQUENCE = re.compile(f"{_CONTROL_SEQUENCE}|{_CONTROL_STRING}|{_ESCAPE_SEQUENCE}")
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*\x1b?|\x1b[ -/]*)\Z"
)
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

LONGEST_SEQUENCE = 4096
"""Characters of an unfinished sequence that are held back; a longer one is text without its start."""


class SafeText:
    """Takes a text in pieces, cut anywhere, and gives what may be shown of each."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now; the beginning of a sequence is held back until it is whole."""
        text = _SEQUENCE.sub("", self._held + piece)
        unfinished = _UNFINISHED.search(text)
        self._held = ""
        if unfinished is not None and len(unfinished[0]) <= LONGEST_SEQUENCE:
            self._held = unfinished[0]
            text = text[: unfinished.start()]
        return _CONTROL_CHARACTER.sub("", text)

    def finish(self) -> str:
        """What was held back, now that nothing follows: text, without what made it look like more."""
        held, self._held = self._held, ""
        return _CONTROL_CHARACTER.sub("", held)


def safe(text: str) -> str:
    """The whole text as it may be shown, its lines kept."""
    return _CONTROL_CHARACTER.sub("", _SEQUENCE.sub("", text))


def one_line(text: str) -> str:
    """The text safe for a terminal and in one line."""
    return " ".join(safe(text).split())
