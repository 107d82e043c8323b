"""Streams to write, and what was written."""

from __future__ import annotations

from collections.abc import AsyncIterable
from decimal import Decimal

import pytest

from lmclient import Chunk, Completion, FinishReason, ToolCall, Usage
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import StreamInterruptedError

CALLS = (
    ToolCall("call-1", "weather", {"city": "Bern"}),
    ToolCall("call-2", "weather", None, '{"city": '),
)
CHUNKS = (
    Chunk(reasoning="I must"),
    Chunk(reasoning=" look."),
    Chunk(text="Let me"),
    Chunk(text=" see \u2028 ✅."),
    Chunk(tool_calls=CALLS),
)
COMPLETION = Completion(
    text="Let me see \u2028 ✅.",
    reasoning="I must look.",
    tool_calls=CALLS,
    finish_reason=FinishReason.TOOL_CALLS,
    usage=Usage(input_tokens=10, cached_input_tokens=4, output_tokens=5, reasoning_tokens=2),
    cost=Decimal("0.25"),
    model="mini",
    profile="small",
)


class Source:
    """A source of chunks that counts what happens to it, and may end in an error or never."""

    def __init__(self, *batches: tuple[Chunk, ...], error: Exception | None = None) -> None:
        self.batches = list(batches)
        self.error = error
        self.closed = 0

    async def next_batch(self) -> tuple[Chunk, ...]:
        if self.batches:
            return self.batches.pop(0)
        if self.error is not None:
            raise self.error
        return ()

    def result(self) -> Completion:
        return COMPLETION

    async def aclose(self) -> None:
        self.closed += 1

    def abort(self) -> None:
        self.closed += 1

    def stream(self) -> AsyncCompletionStream:
        """A stream that has not been entered."""

        async def start() -> Source:
            return self

        return AsyncCompletionStream(start)


@pytest.fixture
def whole() -> Source:
    """An answer with reasoning, text and calls, one chunk at a time."""
    return Source(*((chunk,) for chunk in CHUNKS))


@pytest.fixture
def broken() -> Source:
    """An answer that breaks off in its text, with an error of ours."""
    return Source((Chunk(text="Let me"),), error=StreamInterruptedError("The line broke."))


@pytest.fixture
def failing() -> Source:
    """An answer that ends in a mistake whose message nobody may see."""
    return Source((Chunk(text="Let me"),), error=RuntimeError("sk-secret-key"))


async def written(pieces: AsyncIterable[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@pytest.fixture
def read() -> object:
    """Reads a helper's bytes to their end."""
    return written
