"""Stop strings: what a server should have stopped at, cut from the text should it come through.

A piece of text goes in, the part that is certain comes out; what may still turn out to be the
beginning of a stop string waits for the next piece.
"""

from __future__ import annotations

from collections.abc import Iterable


class StopCutter:
    """Passes text on up to the stop string that is complete first; drops it and all that follows.

    The result does not depend on how the text is cut into pieces. Empty stop strings are ignored.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._firsts = tuple({stop[0] for stop in self._stops})
        self._held = ""
        self.stopped = False

    def feed(self, piece: str) -> str:
        """The text that is certain now that `piece` has arrived; "" once a stop string has come."""
        if not self._held and not self.stopped:
            for first in self._firsts:
                if first in piece:
                    break
            else:
                return piece
        return self._scan(piece)

    def finish(self) -> str:
        """The rest: the text has ended, so what was held back is no stop string."""
        held, self._held = self._held, ""
        return held

    def _scan(self, piece: str) -> str:
        if self.stopped:
            return ""
        text = self._held + piece
        # The one that is complete first, as a server that reads token by token sees it; of two
        # that end together the longer one.
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)[1]]
        certain = len(text) - max(partial_suffix(text, stop) for stop in self._stops)
        self._held = text[certain:]
        return text[:certain]


def partial_suffix(text: str, marker: str) -> int:
    """How many characters at the end of `text` could be the beginning of `marker`."""
    at = text.find(marker[0], max(0, len(text) - len(marker) + 1))
    while at >= 0:
        if marker.startswith(text[at:]):
            return len(text) - at
        at = text.find(marker[0], at + 1)
    return 0
