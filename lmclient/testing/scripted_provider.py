"""The provider behind a scripted model."""

from __future__ import annotations

import asyncio
import builtins
import copy
import datetime
import math
import time
from collections.abc import Callable, Sequence

import msgspec

from lmclient.core.completion import Chunk, Completion
from lmclient.core.http import HttpRequest
from lmclient.core.request import Attempt, CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import LMClientError, TimeoutError
from lmclient.profiles.model import ModelProfile
from lmclient.testing.scripted_calls import Calls, ScriptedRequest
from lmclient.testing.scripted_reply import Reply, chunks_of, part_of


class ScriptedProvider:
    """Answers with what `choose` finds for a request. One for each client; they share `calls`."""

    def __init__(self, calls: Calls, choose: Callable[[ScriptedRequest], Reply]) -> None:
        self._calls = calls
        self._choose = choose

    async def open(self, request: CompletionRequest) -> AsyncCompletionStream:
        call = _Call(self._calls, request)
        try:
            await call.answer(self._choose)
        except BaseException as error:
            call.end(error)
            raise
        if request.stream:
            return AsyncCompletionStream(call)
        call.end(None)
        return AsyncCompletionStream.of(call.completion)

    async def models(self, profile: ModelProfile) -> list[str]:
        return [profile.model]

    async def supports_tools(self, profile: ModelProfile) -> bool:
        return True

    def preview(self, request: CompletionRequest) -> HttpRequest:
        """What tells requests apart for a cache; there is nothing to send it to."""
        body = {
            "messages": request.conversation.to_messages(),
            "stream": request.stream,
            "options": {name: repr(value) for name, value in msgspec.structs.asdict(request.options).items()},
        }
        return HttpRequest(url=f"scripted://{request.profile.provider}", body=msgspec.json.encode(body))

    async def aclose(self) -> None:
        pass


class _Call:
    """One call: the source of its stream."""

    def __init__(self, calls: Calls, request: CompletionRequest) -> None:
        self._calls = calls
        self._request = request
        self._recorded = calls.begin(request)
        self._clock = calls.clock()
        self._began = time.perf_counter()
        self._attempt = Attempt(profile=request.profile, started=datetime.datetime.now(datetime.UTC))
        request.attempts.append(self._attempt)
        self._chunks: list[Chunk] = []
        self._read = 0
        self._error: Exception | None = None
        self._first_token: float | None = None
        self.completion = Completion()

    async def answer(self, choose: Callable[[ScriptedRequest], Reply]) -> None:
        """Waits for the reply. Raises its error, unless part of the answer is streamed before."""
        await self._calls.meet(self._recorded)
        reply = choose(self._recorded)
        await self._wait(reply.delay)
        said = reply.answer(self._recorded) if callable(reply.answer) else reply.answer
        error = said if isinstance(said, Exception) else reply.error
        text = "" if isinstance(said, Exception) else said
        self.completion = reply.completion(text, self._request)
        self._chunks = [] if isinstance(said, Exception) else chunks_of(self.completion)
        if self._request.stream and self._chunks:
            self._first_token = self._seconds()
        self._error = None if error is None else copy.copy(error)  # each request gets one of its own
        if self._error is not None and not (self._request.stream and self._chunks):
            self._read = len(self._chunks)
            raise self._error

    async def next_batch(self) -> Sequence[Chunk]:
        self._clock.stir()
        await asyncio.sleep(0)  # other streams move between the words of this one
        if self._read < len(self._chunks):
            self._read += 1
            return (self._chunks[self._read - 1],)
        if self._error is not None:
            self.end(self._error)
            raise self._error
        self.end(None)
        return ()

    def result(self) -> Completion:
        return self._attempt.completion or self._part()

    async def aclose(self) -> None:
        self.end(asyncio.CancelledError("the caller left the stream"))

    def abort(self) -> None:
        self.end(asyncio.CancelledError("the caller left the stream"))

    def end(self, error: BaseException | None) -> None:
        """Books how the call ended, once."""
        if self._recorded.end is not None:
            return
        self._calls.end(self._recorded)
        whole = self.completion if error is None else self._part()
        duration = self._seconds()
        self.completion = msgspec.structs.replace(
            whole, duration=duration, time_to_first_token=self._first_token
        )
        self._attempt.duration = duration
        self._attempt.error = error
        if error is None or self._read:
            self._attempt.completion = self.completion
        if isinstance(error, LMClientError) and self._read:
            error.partial = self.completion

    async def _wait(self, delay: float) -> None:
        deadline = self._request.deadline
        if delay != math.inf or deadline is None:
            await self._clock.wait(delay)
            return
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._clock.wait(delay)
        except builtins.TimeoutError:
            raise TimeoutError("The scripted model did not answer in the time of the call.") from None

    def _part(self) -> Completion:
        return part_of(self.completion, self._chunks[: self._read])

    def _seconds(self) -> float:
        return time.perf_counter() - self._began
