"""What all steps of one walk share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from lmclient.client import AsyncClient
from lmclient.flows.agent import resolved
from lmclient.flows.context import AgentContext
from lmclient.flows.events import FlowEvent

Listener = Callable[[FlowEvent], Awaitable[None]]
UpdateCallback = Callable[[AgentContext], Any]


class WalkState:
    """The client, the bounds and the listeners of one walk."""

    def __init__(
        self,
        client: AsyncClient,
        *,
        first_id: int,
        max_concurrency: int | None = None,
        max_steps: int = 100,
        on_update: UpdateCallback | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.client = client
        self.max_steps = max_steps
        self.streaming = listener is not None
        self.stopped_by_limit = False
        self._on_update = on_update
        self._listener = listener
        self._next_id = first_id
        self.slot: contextlib.AbstractAsyncContextManager[Any] = (
            contextlib.nullcontext() if max_concurrency is None else asyncio.Semaphore(max_concurrency)
        )
        """Held while a branch runs; never by a step, whose branches need it."""

    def new_id(self) -> int:
        """The id of the next step in the trace."""
        self._next_id += 1
        return self._next_id - 1

    async def emit(self, event: Callable[..., FlowEvent], **fields: Any) -> None:
        """Tells the listener of an event, if there is one."""
        if self._listener is not None:
            await self._listener(event(**fields))

    async def updated(self, context: AgentContext) -> None:
        """Calls `on_update`, if there is one."""
        if self._on_update is not None:
            await resolved(self._on_update(context))
