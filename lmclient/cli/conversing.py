"""Asking a model from code that waits: one answer at a time, and Ctrl-C ends only that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from lmclient.core.completion import Chunk, Completion

if TYPE_CHECKING:
    from lmclient.client import AsyncClient, CallOptions
    from lmclient.core.conversation import Conversation
    from lmclient.profiles.directory import Target
    from lmclient.settings import Settings


class Answer(NamedTuple):
    """A completion, or the part of it that had arrived when Ctrl-C `interrupted` it."""

    completion: Completion
    interrupted: bool = False


class Asker:
    """Asks one target. Made by `asking`."""

    def __init__(
        self,
        client: AsyncClient,
        runner: asyncio.Runner,
        target: Target,
        options: CallOptions,
        streaming: bool,
    ) -> None:
        self._client = client
        self._runner = runner
        self._target = target
        self._options = options
        self._streaming = streaming

    def ask(self, conversation: Conversation, show: Callable[[Chunk], None]) -> Answer:
        """The answer; `show` gets its chunks as they arrive, or all of it at once.

        After Ctrl-C the connection to the provider is closed. Raises what the client raises.
        """
        # The runner turns Ctrl-C into the cancellation of what runs, which closes the connection.
        if not self._streaming:
            try:
                return Answer(self._runner.run(self._complete(conversation, show)))
            except KeyboardInterrupt:
                return Answer(Completion(), interrupted=True)
        stream = self._client.stream(self._target, conversation, **self._options)

        async def read() -> None:
            async with stream:
                async for chunk in stream:
                    show(chunk)

        try:
            self._runner.run(read())
        except KeyboardInterrupt:
            return Answer(stream.result(), interrupted=True)
        return Answer(stream.completion)

    async def _complete(self, conversation: Conversation, show: Callable[[Chunk], None]) -> Completion:
        completion = await self._client.complete(self._target, conversation, **self._options)
        show(Chunk(completion.text, completion.reasoning, completion.tool_calls))
        return completion


@contextmanager
def asking(settings: Settings, target: Target, options: CallOptions, *, streaming: bool) -> Iterator[Asker]:
    """Opens a client for `target`, and closes it at the end."""
    from lmclient.client import AsyncClient

    with asyncio.Runner() as runner:
        client = AsyncClient(settings)
        try:
            yield Asker(client, runner, target, options, streaming)
        finally:
            runner.run(client.aclose())
