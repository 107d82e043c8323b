"""Who may call what: the calls of the gateway's callers, made on the client."""

from __future__ import annotations

from starlette.types import Scope

from lmclient.client import AsyncClient
from lmclient.core.completion import Completion
from lmclient.core.stream import AsyncCompletionStream
from lmclient.server.call import Call


class Access:
    """Makes the calls that requests ask for."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def complete(self, call: Call, scope: Scope) -> Completion:
        """The whole answer. Raises what `AsyncClient.complete` raises."""
        return await self._client.complete(call.model, call.conversation, **call.options)

    async def open(self, call: Call, scope: Scope) -> AsyncCompletionStream:
        """The stream of an answer that has begun. Raises what `AsyncClient.stream` raises."""
        return await self._client.stream(call.model, call.conversation, **call.options).__aenter__()
