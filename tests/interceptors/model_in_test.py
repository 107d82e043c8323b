"""A model that answers as a test says, at the end of a chain of interceptors."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from lmclient import (
    AsyncCompletionStream,
    Attempt,
    Chunk,
    Completion,
    CompletionRequest,
    Conversation,
    FinishReason,
    ModelProfile,
    ToolCall,
    Usage,
)

CALLS = (ToolCall("call_1", "weather", {"city": "Zürich"}, '{"city":"Zürich"}'),)
ANSWER = Completion(
    text="A river: the Rhine, which is long enough for two chunks.",
    reasoning="They want a river.",
    tool_calls=CALLS,
    finish_reason=FinishReason.TOOL_CALLS,
    usage=Usage(input_tokens=7, output_tokens=9, details={"seen": 1}),
    cost=Decimal("0.000123"),
    cost_source="profile",
    model="m-1",
    id="answer-1",
    provider_items=({"type": "thought", "signature": "c2ln"},),
    metadata={"logprobs": [-0.5]},
)


def change(completion: Completion) -> None:
    """Does to a completion what its caller may."""
    for call in completion.tool_calls:
        assert call.arguments is not None
        call.arguments["city"] = "changed"
    completion.usage.details["changed"] = True
    completion.provider_items[0]["type"] = "changed"
    completion.metadata["logprobs"].append("changed")


def profile(name: str = "first", **values: Any) -> ModelProfile:
    return ModelProfile(**{"name": name, "provider": "openai-chat", "model": "m-1", **values})


def request(text: str = "Name a river.", **values: Any) -> CompletionRequest:
    return CompletionRequest(
        **{"profile": profile(), "conversation": Conversation.create(text), "category": "m", **values}
    )


class Model:
    """Gives an answer, or raises it, once `gate` is open. `called` is released with each call."""

    def __init__(self, answer: Completion | BaseException = ANSWER) -> None:
        self.answer = answer
        self.calls = 0
        self.closed = 0
        self.called = asyncio.Semaphore(0)
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, request: CompletionRequest) -> AsyncCompletionStream:
        self.calls += 1
        self.called.release()
        attempt = Attempt(profile=request.profile, started=datetime.datetime.now(datetime.UTC), duration=0.25)
        request.attempts.append(attempt)
        await self.gate.wait()
        if isinstance(self.answer, BaseException):
            attempt.error = self.answer
            raise self.answer
        answer = self.answer
        if not answer.profile:
            answer = msgspec.structs.replace(answer, profile=request.profile.name)
        answer = msgspec.structs.replace(answer, requests=1)
        attempt.completion = answer
        if not request.stream:
            return AsyncCompletionStream.of(answer)
        return AsyncCompletionStream(Source(answer, self._left))

    def _left(self) -> None:
        self.closed += 1


class Source:
    """The chunks of an answer, one in each batch."""

    def __init__(self, answer: Completion, left: Callable[[], None]) -> None:
        self._answer = answer
        self._left = left
        self._chunks = [Chunk(answer.text[:7]), Chunk(answer.text[7:])]
        if answer.reasoning:
            self._chunks.insert(0, Chunk(reasoning=answer.reasoning))
        if answer.tool_calls:
            self._chunks.append(Chunk(tool_calls=answer.tool_calls))

    async def next_batch(self) -> Sequence[Chunk]:
        return (self._chunks.pop(0),) if self._chunks else ()

    def result(self) -> Completion:
        return self._answer

    async def aclose(self) -> None:
        self._left()

    def abort(self) -> None:
        self._left()
