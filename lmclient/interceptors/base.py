"""What an interceptor is, and how a chain of them is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream

CallNext = Callable[[CompletionRequest], Awaitable[AsyncCompletionStream]]
"""The rest of the chain. Returns once the first chunk (or the whole answer) has arrived."""


class Interceptor(Protocol):
    """Something that every call passes on its way to the provider.

    It may answer without calling on, call on several times, change the request, or wrap the
    stream. Whoever only needs the end of the stream uses `stream.on_end`. One instance serves all
    calls of its client, concurrently.
    """

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream: ...


@runtime_checkable
class Closeable(Protocol):
    """An interceptor that holds something; the client closes it, once for each `aclose` of its own."""

    async def aclose(self) -> None: ...


class Hooks:
    """The simple form of an interceptor: override `before`, `after` or both.

    An error raised in either fails the call.
    """

    async def before(self, request: CompletionRequest) -> CompletionRequest:
        """The request that goes on; by default the same."""
        return request

    async def after(self, request: CompletionRequest, completion: Completion) -> Completion:
        """The answer that the caller gets, for whole answers only; by default the same.

        The chunks of a stream have been delivered by then.
        """
        return completion

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        request = await self.before(request)
        stream = await call_next(request)

        async def end(completion: Completion, error: BaseException | None) -> Completion | None:
            return None if error is not None else await self.after(request, completion)

        stream.on_end(end)
        return stream


def chain(interceptors: Sequence[Interceptor], last: CallNext) -> CallNext:
    """The call that passes the interceptors, the first one outermost, and ends in `last`."""
    call = last
    for interceptor in reversed(interceptors):
        call = _link(interceptor, call)
    return call


def _link(interceptor: Interceptor, call_next: CallNext) -> CallNext:
    def call(request: CompletionRequest) -> Awaitable[AsyncCompletionStream]:
        return interceptor(request, call_next)

    return call
