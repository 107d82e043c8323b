"""Reads a stream to its end and writes it as server-sent events of some protocol."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

import msgspec

from lmclient.core.completion import Chunk, Completion
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import LMClientError

logger = logging.getLogger("lmclient.ui")

SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # nginx would collect the events
}
"""The headers of an answer of server-sent events."""

encode = msgspec.json.Encoder(decimal_format="number").encode
"""Writes JSON; money keeps all its digits."""


class EventWriter(Protocol):
    """One protocol's way to say an answer. Does no IO; each method returns whole events, or b""."""

    def begin(self) -> bytes:
        """Before anything is known of the answer."""
        ...

    def chunks(self, batch: Sequence[Chunk]) -> bytes:
        """For the chunks that have arrived."""
        ...

    def end(self, completion: Completion) -> bytes:
        """For the end of a whole answer."""
        ...

    def fail(self, error: Exception) -> bytes:
        """For an answer that is not going to be whole."""
        ...


async def events(stream: AsyncCompletionStream, writer: EventWriter) -> AsyncGenerator[bytes, None]:
    """The answer as the events of a protocol; the stream is closed when the reader leaves."""
    try:
        if beginning := writer.begin():
            yield beginning
        async with stream:
            while batch := await stream.next_batch():
                if piece := writer.chunks(batch):
                    yield piece
        yield writer.end(stream.completion)
    except Exception as error:  # the boundary: the answer has begun, so only an event can tell
        yield writer.fail(error)


def event(data: Any) -> bytes:
    """One event with JSON data and no name."""
    return b"data: " + encode(data) + b"\n\n"


def public_message(error: Exception) -> str:
    """What a reader may see of an error: lmclient's own messages hold no secrets, others might.

    Those are written into the log instead.
    """
    if isinstance(error, LMClientError):
        return str(error)
    logger.error("An answer failed with an unexpected error.", exc_info=error)
    return "The server failed unexpectedly; its log says why."
