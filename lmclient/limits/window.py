"""What was taken within the last minute, piece by piece, so that a limit holds in every minute."""

from __future__ import annotations

import math
from collections import deque

from lmclient.limits.base import place


class RequestWindow:
    """The times of the requests of the last `span` seconds, oldest first."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._times: deque[float] = deque()

    def __len__(self) -> int:
        return len(self._times)

    def add(self, now: float) -> None:
        """Takes one place."""
        self._times.append(now)

    def give_back(self, taken: float) -> None:
        """Frees a place taken at that time, unless it is free again already."""
        if self._times and self._times[0] <= taken:
            self._times.remove(taken)

    def advance(self, now: float) -> None:
        """Forgets the requests that left the window."""
        while self._times and self._times[0] + self._span <= now:
            self._times.popleft()

    def wait(self, ahead: int, limit: int, now: float) -> float:
        """Seconds until a place is free for the call behind `ahead` others."""
        index, windows = place(len(self._times), ahead, limit)
        since = self._times[index] if index >= 0 else now
        return max(0.0, since + self._span * windows - now)


class TokenEntry:
    """Tokens taken at a time: an estimate until they are `settled`."""

    __slots__ = ("gone", "settled", "taken", "tokens")

    def __init__(self, taken: float, tokens: int) -> None:
        self.taken = taken
        self.tokens = tokens
        self.settled = False
        self.gone = False


class TokenWindow:
    """The tokens of the last `span` seconds, oldest first, and their sum."""

    def __init__(self, span: float) -> None:
        self.total = 0
        self._span = span
        self._entries: deque[TokenEntry] = deque()

    def add(self, tokens: int, now: float) -> TokenEntry:
        """Takes so many tokens."""
        entry = TokenEntry(now, tokens)
        self._entries.append(entry)
        self.total += tokens
        return entry

    def settle(self, entry: TokenEntry, tokens: int) -> None:
        """Corrects an entry for good; one that has left the window is past correcting."""
        entry.settled = True
        if not entry.gone:
            self.total += tokens - entry.tokens
            entry.tokens = tokens

    def advance(self, now: float) -> None:
        """Forgets what has left the window."""
        while self._entries and self._entries[0].taken + self._span <= now:
            entry = self._entries.popleft()
            entry.gone = True
            self.total -= entry.tokens

    def wait(self, tokens: int, limit: int, now: float) -> tuple[float, float]:
        """Seconds until so many more fit: as it stands, and if all estimates came to nothing."""
        excess = self.total + tokens - limit
        if excess <= 0:
            return 0.0, 0.0
        open_ = sum(entry.tokens for entry in self._entries if not entry.settled)
        as_it_stands, at_least = math.inf, 0.0
        freed, freed_settled = 0, 0
        for entry in self._entries:
            leaves = entry.taken + self._span - now
            freed += entry.tokens
            if entry.settled and freed_settled < excess - open_:
                freed_settled += entry.tokens
                at_least = leaves
            if freed >= excess:
                as_it_stands = leaves
                break
        return as_it_stands, at_least
