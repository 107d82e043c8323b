"""Client: the calls of AsyncClient for code without an event loop of its own."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from lmclient.background import BackgroundLoop
from lmclient.client import AsyncClient, CallOptions
from lmclient.core.completion import Chunk, Completion
from lmclient.core.conversation import ConversationLike
from lmclient.core.http import HttpRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import LMClientError
from lmclient.interceptors.base import Interceptor
from lmclient.profiles.directory import Target
from lmclient.profiles.model import ModelProfile
from lmclient.settings import Settings

if TYPE_CHECKING:
    from lmclient.spend.client import Spend
    from lmclient.transports.adapting import TransportLike


class Client:
    """Calls language models by category, from any thread, also inside a running event loop.

    All calls run on one background event loop, which starts with the first call and ends with
    `close()`. After a fork the child starts one of its own. See `AsyncClient` for the arguments.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        interceptors: Sequence[Interceptor] | None = None,
        transport: TransportLike | None = None,
    ) -> None:
        self._client = AsyncClient(settings, interceptors=interceptors, transport=transport)
        self._background = BackgroundLoop()
        # For a client that nobody closes. What is booked is committed by then, and an interpreter that
        # shuts down starts no threads any more, which releasing all of it would need.
        weakref.finalize(self, self._background.close)

    @property
    def settings(self) -> Settings:
        """The settings of the client."""
        return self._client.settings

    def complete(
        self, target: Target, conversation: ConversationLike, **options: Unpack[CallOptions]
    ) -> Completion:
        """The whole answer of the model behind `target`. Raises what `AsyncClient.complete` raises."""
        return self._background.run(self._client.complete, target, conversation, **options)

    def stream(
        self, target: Target, conversation: ConversationLike, **options: Unpack[CallOptions]
    ) -> CompletionStream:
        """The answer as a stream of chunks, to be used in a `with` block."""
        return CompletionStream(self._client.stream(target, conversation, **options), self._background)

    @property
    def spend(self) -> Spend:
        """What the calls have cost, as the ledger of the settings says: reports, totals and records."""
        from lmclient.spend.client import Spend

        return Spend(self._client.spend, self._background.run)

    def profile(self, target: Target) -> ModelProfile:
        """The profile behind `target`. Raises `ConfigurationError` if there is none."""
        return self._client.profile(target)

    def models(self, target: Target, *, refresh: bool = False) -> list[str]:
        """The names of the models that the server behind `target` offers, asked for once."""
        return self._background.run(self._client.models, target, refresh=refresh)

    def supports_tools(self, target: Target) -> bool:
        """Whether the model behind `target` can call tools, as far as its provider says."""
        return self._background.run(self._client.supports_tools, target)

    def count_tokens(self, target: Target, text_or_conversation: ConversationLike) -> int:
        """The input tokens that a call with this conversation costs; see `AsyncClient.count_tokens`."""
        return self._background.run(self._client.count_tokens, target, text_or_conversation)

    def preview(
        self, target: Target, conversation: ConversationLike, **options: Unpack[CallOptions]
    ) -> HttpRequest:
        """The HTTP request that `complete` would send, without sending it."""
        return self._client.preview(target, conversation, **options)

    def close(self) -> None:
        """Cancels what still runs and releases the connections. Closing again is fine."""
        self._background.close(self._client.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class CompletionStream:
    """The chunks of one answer, and afterwards its `completion`; see `AsyncCompletionStream`.

    One thread reads it; any thread may close it. A read that this cuts short raises `LMClientError`.
    """

    _closed = False

    def __init__(self, stream: AsyncCompletionStream, background: BackgroundLoop) -> None:
        self._stream = stream
        self._background = background
        self._ready: deque[Chunk] = deque()

    @property
    def completion(self) -> Completion:
        """The whole answer. Raises `LMClientError` while the stream still runs."""
        return self._stream.completion

    def __enter__(self) -> Self:
        self._background.run(self._stream.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        if not self._ready:  # one hop to the background loop fetches all that has arrived
            self._ready.extend(self._next_batch())
            if not self._ready:
                raise StopIteration
        return self._ready.popleft()

    def _next_batch(self) -> Sequence[Chunk]:
        try:
            return self._background.run(self._stream.next_batch)
        except LMClientError as error:
            if not self._closed:
                raise
            # The connection was closed under the read, which took that for the server's doing.
            closed = LMClientError("The stream was closed by another thread while this one read it.")
            closed.partial = error.partial
            raise closed from error

    def close(self) -> None:
        """Leaves the stream: closes its connection if it has not ended."""
        self._closed = True
        self._ready.clear()
        if self._background.running:
            self._background.run(self._stream.aclose)
