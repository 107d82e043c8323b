"""Small HTTP servers of the tests' own, for what the fault provider does not do."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Answers one request, given its head and body as bytes; the connection is closed afterwards."""

COMPLETION = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def response(body: bytes = COMPLETION, status: str = "200 OK", *headers: str) -> bytes:
    """A whole response; `headers` are lines such as "retry-after: 3"."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def delta(text: str) -> bytes:
    """An event with a piece of text."""
    return b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % text.encode()


FINISH = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@contextlib.asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that answers with `handler` while the context is open."""
    tasks: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(
                (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0"
            )
            body = await reader.readexactly(int(size.partition(b":")[2]))
            await handler(head + body, writer)
            await writer.drain()
        writer.close()
        tasks.discard(task)

    server = await asyncio.start_server(converse, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(*responses: bytes, seen: list[bytes] | None = None) -> Handler:
    """A handler that gives one response after the other, the last one for ever; `seen` gets the requests."""
    left = [*responses]

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        if seen is not None:
            seen.append(request)
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return handle
