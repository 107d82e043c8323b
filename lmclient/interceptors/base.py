"""What an interceptor is, and how a chain of them is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from lmclient.core.completion import Completion, chunks_of
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import LMClientError

CallNext = Callable[[CompletionRequest], Awaitable[AsyncCompletionStream]]
"""The rest of the chain. Returns once the first chunk (or the whole answer) has arrived."""


class Interceptor(Protocol):
    """Something that every call passes on its way to the provider.

    It may answer without calling on, call on several times, change the request, wrap the stream, or
    read it and hand it on all the same. Whoever only needs the end of the stream uses
    `stream.on_end`. One instance serves all calls of its client, concurrently.
    """

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream: ...


class Forwarding:
    """The mark of interceptors that hand on every stream they are given, so that none need be closed.

    Each class makes that promise for itself; a subclass, which may fail on a stream, is not bound by it.
    """


@runtime_checkable
class Closeable(Protocol):
    """An interceptor that holds something; the client closes it, once for each `aclose` of its own."""

    async def aclose(self) -> None: ...


class Hooks:
    """The simple form of an interceptor: override `before`, `after` or both, with `def` or `async def`.

    An error raised in either fails the call. What is not `async` runs on the event loop, so it must
    not block.
    """

    def before(self, request: CompletionRequest) -> CompletionRequest | Awaitable[CompletionRequest]:
        """The request that goes on; by default the same."""
        return request

    def after(self, request: CompletionRequest, completion: Completion) -> Completion | Awaitable[Completion]:
        """The answer that the caller gets, for whole answers only; by default, or for None, the same.

        The chunks of a stream have been delivered by then.
        """
        return completion

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        before = self.before(request)
        asked = before if isinstance(before, CompletionRequest) or before is None else await before
        if not isinstance(asked, CompletionRequest):  # a `return` is easily forgotten
            raise LMClientError(
                f"{type(self).__name__}.before returned {asked!r:.60}; expected a CompletionRequest."
            )
        stream = await call_next(asked)

        async def end(completion: Completion, error: BaseException | None) -> Completion | None:
            if error is not None:
                return None
            after = self.after(asked, completion)
            return after if isinstance(after, Completion) or after is None else await after

        stream.on_end(end)
        return stream


def chain(interceptors: Sequence[Interceptor], last: CallNext) -> CallNext:
    """The call that passes the interceptors, the first one outermost, and ends in `last`."""
    call = last
    for interceptor in reversed(interceptors):
        call = _link(interceptor, call)
    return call


def _name(interceptor: object) -> str:
    return getattr(interceptor, "__name__", type(interceptor).__name__)


def _link(interceptor: Interceptor, call_next: CallNext) -> CallNext:
    """The call that passes one interceptor.

    Streams that it was given are closed at once when it fails, or answers in another way. Else what they
    cost would not be booked, and what they hold kept until they are collected. What it has read of one
    that is over by now, the caller gets as well.
    """
    owner = getattr(interceptor, "__self__", interceptor)
    if Forwarding in type(owner).__bases__:
        return partial(interceptor, call_next=call_next)

    async def call(request: CompletionRequest) -> AsyncCompletionStream:
        given: list[AsyncCompletionStream] = []

        async def call_on(asked: CompletionRequest) -> AsyncCompletionStream:
            stream = await call_next(asked)
            given.append(stream)
            return stream

        try:
            answer = await interceptor(request, call_on)
            if not hasattr(answer, "is_whole"):  # it may be wrapped
                raise LMClientError(
                    f"The interceptor {_name(owner)} returned {answer!r:.60}; expected a stream, such as "
                    "AsyncCompletionStream.of(completion)."
                )
        except BaseException:
            for stream in given:
                await stream.aclose()
            raise
        for stream in given if answer.is_whole else ():
            if stream is not answer:
                await stream.aclose()
        if request.stream and answer.has_ended:
            answer.replay(chunks_of(answer.completion))
        return answer

    return call
