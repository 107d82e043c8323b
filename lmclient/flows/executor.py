"""FlowExecutor: walks flows with a client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from lmclient.client import AsyncClient
from lmclient.errors import FlowError
from lmclient.flows import graph
from lmclient.flows.agent import Agent
from lmclient.flows.context import AgentContext
from lmclient.flows.events import Finished, FlowEvent
from lmclient.flows.walk import walk_on
from lmclient.flows.walk_state import Listener, UpdateCallback, WalkState
from lmclient.sync import Client


class StepLimitError(FlowError):
    """A way through the flow was longer than `max_steps`. `contexts` are the results all the same."""

    contexts: Sequence[AgentContext] = ()


class FlowExecutor:
    """Walks flows. Serves any number of walks at once; the client stays the caller's to close.

    `max_concurrency` bounds the branches of a walk that run at once (None: only the limits of the
    profiles do). `max_steps` bounds the agents on one way through a flow, from its first agent to a
    final context. `on_update` is called with a context after each chunk of a streamed answer that was
    handled; it may be async.
    """

    def __init__(
        self,
        client: AsyncClient | Client,
        *,
        max_concurrency: int | None = None,
        max_steps: int = 100,
        on_update: UpdateCallback | None = None,
    ) -> None:
        for name, value in (("max_concurrency", max_concurrency), ("max_steps", max_steps)):
            if value is not None and value < 1:
                raise FlowError(f"{name} is {value}; at least 1 is expected.")
        self._client = client
        self._max_concurrency = max_concurrency
        self._max_steps = max_steps
        self._on_update = on_update

    async def walk(self, name: str, context: AgentContext) -> list[AgentContext]:
        """The final contexts of a walk that begins with the agent of this name, errored ones last.

        The context itself is changed, and is the result where nothing branches. An error ends the way
        of its context only, and is kept there. Cancelling cancels every call in flight.

        Raises `FlowError` if there is no such agent, and `StepLimitError` (a `FlowError` with the
        results as `contexts`) once everything else is done where `max_steps` stopped a way.
        """
        return await self._walk(name, context, None)

    def walk_sync(self, name: str, context: AgentContext) -> list[AgentContext]:
        """`walk` for code without an event loop; needs an executor of a `Client`."""
        if not isinstance(self._client, Client):
            raise FlowError(
                "walk_sync needs a FlowExecutor made of a Client; await walk with an AsyncClient."
            )
        return self._client._background.run(self.walk, name, context)

    async def stream(self, name: str, context: AgentContext) -> AsyncGenerator[FlowEvent]:
        """The events of a walk as they happen, answers streamed; the last one is `Finished`.

        Leaving it early cancels the walk: at once with `async with contextlib.aclosing(...)`, else
        when the generator is collected. Raises what `walk` raises, after `Finished`.
        """
        waiting: asyncio.Queue[FlowEvent | None] = asyncio.Queue()
        task = asyncio.create_task(self._walk(name, context, waiting.put))
        task.add_done_callback(lambda _: waiting.put_nowait(None))
        try:
            while (event := await waiting.get()) is not None:
                yield event
            error = None
            try:
                contexts: Sequence[AgentContext] = await task
            except StepLimitError as limit:
                contexts, error = limit.contexts, limit
            yield Finished(contexts=tuple(contexts))
            if error is not None:
                raise error
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _walk(self, name: str, context: AgentContext, listener: Listener | None) -> list[AgentContext]:
        agent = self._first(name, context)
        client = self._client._client if isinstance(self._client, Client) else self._client
        state = WalkState(
            client,
            first_id=1 + max((step.id for step in context.trace), default=0),
            max_concurrency=self._max_concurrency,
            max_steps=self._max_steps,
            on_update=self._on_update,
            listener=listener,
        )
        if context.graph:
            context.graph.append(graph.CONTINUED)
        contexts = await walk_on(state, agent, context)
        contexts.sort(key=lambda final: final.error is not None)
        if state.stopped_by_limit:
            error = StepLimitError(
                f"The flow from {name!r} was stopped after {self._max_steps} steps on one way (max_steps)."
            )
            error.contexts = contexts
            raise error
        return contexts

    def _first(self, name: str, context: AgentContext) -> Agent:
        agent = context.agents.get(name)
        if agent is None:
            raise FlowError(
                f"There is no agent {name!r} to begin with; the context has "
                f"{', '.join(map(repr, context.agents)) or 'no agents'}."
            )
        return agent
