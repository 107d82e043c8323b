"""What a call takes of the limits of its profile, and what a store of such limits does."""

from __future__ import annotations

from typing import Protocol

import msgspec

WINDOW = 60.0
"""Seconds that "per minute" means: never more than the limit in any such stretch of time."""
SLACK = 0.5
"""Seconds by which one request may take longer to the server than a later one."""
SPAN = WINDOW + SLACK
"""Seconds after which a place is free again, so that the limit also holds as the server sees it."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What one call wants of its scope, and the limits (None: no limit) that it must keep there."""

    scope: str
    tokens: int = 0
    slots: int = 1
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None


class Wait(msgspec.Struct, frozen=True, gc=False):
    """A demand that cannot be met yet: it may be in `seconds`, None if that depends on other calls.

    It will not be met earlier than `at_least` seconds from now, whatever other calls give back.
    """

    seconds: float | None
    at_least: float = 0.0


class Lease(Protocol):
    """What a call has taken of all its limits together."""

    async def settle(self, requests: int, tokens: int) -> None:
        """Frees the slot and corrects what was taken to these figures. Harmless when called again."""
        ...

    def drop(self) -> None:
        """Frees the slot where nobody can wait any more: in a finalizer, on any thread."""
        ...


class LimitStore(Protocol):
    """Where the state of the limits lives. Shared by event loops and threads."""

    async def take(self, demand: Demand, ahead: int, *, waits: bool = True) -> Lease | Wait:
        """All of the demand, or nothing of it.

        With calls `ahead` in the line nothing is taken, only the wait estimated. A call that never
        `waits` must not be waited for by others.
        """
        ...

    async def aclose(self) -> None:
        """Releases what the store holds on the running event loop."""
        ...


def place(count: int, ahead: int, limit: int) -> tuple[int, int]:
    """Which of the `count` requests in a window makes room for the call behind `ahead` others.

    The call can enter so many windows after that request; those ahead of it enter one window after
    the requests that make room for them. The index is -1 if there is room now.
    """
    windows, rest = divmod(ahead, limit)
    index = count + rest - limit
    return (index, windows + 1) if index >= 0 else (-1, windows)
