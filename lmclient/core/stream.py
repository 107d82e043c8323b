"""The stream of chunks that every call is, whether its caller asked for a stream or not.

A stream has a source that yields batches of chunks: a provider's connection, a cached answer, or
another stream. Whoever only needs the end of a stream registers a callback with `on_end`, so that
a chunk costs nothing for each interceptor that it passes.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Protocol

import anyio

from lmclient.core.completion import Chunk, Completion
from lmclient.errors import LMClientError

EndCallback = Callable[[Completion, BaseException | None], Awaitable[Completion | None]]
"""Called once when a stream is over, with the answer (or the part that arrived) and the error.

The error is None for an answer that is whole, and a `CancelledError` where the caller left. What
it returns, if not None, replaces the completion.
"""


class ChunkSource(Protocol):
    """Where the chunks of a stream come from."""

    async def next_batch(self) -> Sequence[Chunk]:
        """The chunks that arrived, at least one; none at the end. Raises what went wrong."""
        ...

    def result(self) -> Completion:
        """The whole answer after the end, before it the part that has arrived."""
        ...

    async def aclose(self) -> None:
        """Gives the answer up, if it is not at its end, and frees its connection."""
        ...

    def abort(self) -> None:
        """The same for a caller that cannot wait: a finalizer, on any thread."""
        ...


class AsyncCompletionStream:
    """The chunks of one answer, and afterwards its `completion`.

    Use it as `async with` a client's `stream(...)` and iterate over it. Leaving it early closes
    the connection. Not to be iterated from two tasks at once.
    """

    _start: Callable[[], Awaitable[ChunkSource]] | None = None
    _source: ChunkSource | None = None
    _ends = False
    _tells = False
    _error: BaseException | None = None
    _interruption: LMClientError | None = None
    _completion: Completion | None = None

    def __init__(self, source: ChunkSource | Callable[[], Awaitable[ChunkSource]]) -> None:
        if callable(source):
            self._start = source
        else:
            self._source = source
        # A dropped stream is closed on the loop that it was made on, None if there was none.
        self._loop = asyncio._get_running_loop()
        self._ready: deque[Chunk] = deque()
        self._callbacks: deque[EndCallback] = deque()

    @classmethod
    def of(cls, completion: Completion, chunks: Iterable[Chunk] = ()) -> AsyncCompletionStream:
        """A stream that yields these chunks and ends in this completion, without any provider."""
        return cls(_Finished(completion, tuple(chunks)))

    @property
    def is_whole(self) -> bool:
        """Whether the answer was there from the beginning, so that no connection stands behind it."""
        return isinstance(self._source, _Finished)

    def on_end(self, callback: EndCallback) -> None:
        """Has `callback` awaited once when the stream is over, however it ends, after earlier ones.

        Of a stream that is over already, it is awaited by whoever next reads or leaves it.
        """
        self._callbacks.append(callback)

    @property
    def has_ended(self) -> bool:
        """Whether the stream is over: read to its end, failed, or left."""
        return self._ends

    def replay(self, chunks: Iterable[Chunk]) -> None:
        """Has the next reader begin with these chunks, whatever was read before."""
        self._ready = deque(chunks)

    @property
    def completion(self) -> Completion:
        """The whole answer, or what had arrived when the stream was left early.

        Raises `LMClientError` while the stream still runs.
        """
        if self._completion is None:
            raise LMClientError("The stream has not ended yet; read it to its end for the completion.")
        return self._completion

    async def __aenter__(self) -> AsyncCompletionStream:
        await self._started()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncCompletionStream:
        return self

    async def __anext__(self) -> Chunk:
        if not self._ready:
            self._ready.extend(await self.next_batch())
            if not self._ready:
                raise StopAsyncIteration
        return self._ready.popleft()

    async def next_batch(self) -> Sequence[Chunk]:
        """All chunks that have arrived, waiting for the first; none at the end."""
        if self._ready:
            batch = tuple(self._ready)
            self._ready.clear()
            return batch
        if self._completion is not None:
            await self._tell()
            return self._at_end()
        source = self._source or await self._started()
        try:
            batch_ = await source.next_batch()
        except BaseException as error:
            await self._fail(source, error)
            raise
        if not batch_:
            await self._finish(source.result(), None)
            return self._at_end()
        return batch_

    async def wait(self) -> Completion:
        """Reads the rest of the stream and returns the completion."""
        self._ready.clear()
        if isinstance(self._source, _Finished) and not self._ends:
            await self._finish(self._source.result(), None)
        else:
            while await self.next_batch():
                pass
        return self.completion

    def result(self) -> Completion:
        """The completion if the stream has ended, else the part that has arrived."""
        if self._completion is not None:
            return self._completion
        return Completion() if self._source is None else self._source.result()

    async def aclose(self) -> None:
        """Leaves the stream: closes its connection if it has not ended. Harmless when called again."""
        self._start = None
        self._ready.clear()
        if self._completion is None and self._source is not None:
            await self._fail(self._source, asyncio.CancelledError("the caller left the stream"))
        elif self._callbacks:
            with anyio.CancelScope(shield=True):
                await self._tell()

    async def interrupt(self, error: LMClientError) -> None:
        """Leaves a stream of this event loop, also one that is just beginning; readers get the error.

        One that has ended, or runs on another loop, is left as it is.
        """
        if self._completion is None and self._loop in (None, asyncio.get_running_loop()):
            self._interruption = error
            if self._source is not None:
                await self.aclose()

    def abort(self) -> None:
        """Closes the connection at once, without waiting and without the callbacks."""
        self._completion = self.result()
        if self._source is not None:
            self._source.abort()

    def __del__(self) -> None:
        if self._completion is not None or self._source is None:
            return
        warnings.warn(
            "A stream was dropped before its end; use it in a `with` block, or close it.",
            ResourceWarning,
            stacklevel=2,
            source=self,
        )
        if self._loop is None or not self._loop.is_running():
            self._source.abort()
            return
        successor = AsyncCompletionStream(self._source)
        successor._callbacks = self._callbacks
        asyncio.run_coroutine_threadsafe(successor.aclose(), self._loop)

    async def _started(self) -> ChunkSource:
        if self._source is None:
            if self._start is None:
                raise LMClientError("The stream is closed.")
            self._loop = asyncio.get_running_loop()
            self._source = await self._start()
            self._start = None
            if self._interruption is not None:  # its client was closed in the meantime
                await self.aclose()
                raise self._interruption
        return self._source

    def _at_end(self) -> Sequence[Chunk]:
        if self._interruption is not None:
            raise self._interruption
        return ()

    async def _fail(self, source: ChunkSource, error: BaseException) -> None:
        """Ends the stream with what has arrived. Also when cancelled: its spend must be booked."""
        with anyio.CancelScope(shield=True):
            try:
                await source.aclose()
            finally:
                partial = source.result()
                if isinstance(error, LMClientError) and error.partial is None:
                    error.partial = partial
                await self._finish(partial, error)

    async def _finish(self, completion: Completion, error: BaseException | None) -> None:
        if self._ends:  # one task reads and another closes: the end is told once
            return
        self._ends = True
        self._completion, self._error = completion, error
        if self._callbacks:
            await self._tell()

    async def _tell(self) -> None:
        """Runs the callbacks that have not run; one that raises makes the stream fail for those after it."""
        if not self._ends or self._tells:
            return
        self._tells = True
        raised: BaseException | None = None
        while self._callbacks:
            callback = self._callbacks.popleft()
            try:
                self._completion = await callback(self.completion, self._error) or self._completion
            except BaseException as problem:  # raised below, once the later callbacks know of it
                raised = self._error = problem
        self._tells = False
        if raised is not None:
            raise raised


class _Finished:
    """The source of an answer that is already whole."""

    def __init__(self, completion: Completion, chunks: tuple[Chunk, ...]) -> None:
        self._completion = completion
        self._chunks = chunks

    async def next_batch(self) -> Sequence[Chunk]:
        chunks, self._chunks = self._chunks, ()
        return chunks

    def result(self) -> Completion:
        return self._completion

    async def aclose(self) -> None:
        self._chunks = ()

    def abort(self) -> None:
        self._chunks = ()
