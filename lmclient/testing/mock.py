"""A very fast OpenAI-compatible provider, for measuring what a client costs.

It answers bytes computed beforehand from a raw asyncio protocol, so that the client under test, not
the server, is the bottleneck (uvloop is used where it is installed). For a measurement, start it in
a process of its own:

    lmclient testing serve mock --port 8123        (port 0 picks a free one; the line printed names it)

``python -m lmclient.testing.mock`` is the same command. In a test:

    with MockProvider.running() as provider:       (in a thread of its own)
        base_url = provider.url()

    async with MockProvider.open() as provider:    (on the running event loop)
        ...

Requests
    POST /v1/chat/completions   "stream": false: one JSON body
                                "stream": true: server-sent events: the chunks with text, one with the
                                finish reason, one with usage, [DONE]
    POST /v1/completions        the same two shapes for text completions
    GET  /v1/models             one model, "mock"

    The query string of any path can set chunks=N (default 200), delay_ms=D (time to first byte,
    default 0; not with paced) and paced=1 (every streamed event in a write of its own, as a real
    provider sends them), e.g. /v1/chat/completions?chunks=2000&paced=1. Requests need a
    content-length.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from functools import lru_cache
from typing import Any, Literal, cast

from lmclient.testing.hosting import running_in_thread

Kind = Literal["chat", "text"]

MODEL = "mock"
CREATED = 1_760_000_000
TEXT = "Lorem ipsum dolor sit amet. " * 20
USAGE = {
    "prompt_tokens": 25,
    "completion_tokens": 200,
    "total_tokens": 225,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def _encode(payload: object) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()


def _json_response(payload: object, status: str = "200 OK") -> bytes:
    body = _encode(payload)
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(payload: object) -> bytes:
    return _http_chunk(b"data: " + _encode(payload) + b"\n\n")


MODELS = _json_response(
    {"object": "list", "data": [{"id": MODEL, "object": "model", "created": CREATED, "owned_by": MODEL}]}
)
NOT_FOUND = _json_response(
    {"error": {"message": "no such path", "type": "invalid_request_error"}}, "404 Not Found"
)


@lru_cache
def whole_body(kind: Kind) -> bytes:
    """The response without streaming."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    if kind == "chat":
        identity = {"id": "chatcmpl-mock", "object": "chat.completion"}
        choice["message"] = {"role": "assistant", "content": TEXT}
    else:
        identity = {"id": "cmpl-mock", "object": "text_completion"}
        choice["text"] = TEXT
    return _json_response(
        {**identity, "created": CREATED, "model": MODEL, "choices": [choice], "usage": USAGE}
    )


@lru_cache
def stream_parts(kind: Kind, chunks: int) -> tuple[bytes, ...]:
    """The streamed response, one part for the head and for each event."""
    form = "chat.completion.chunk" if kind == "chat" else "text_completion"
    base = {"id": "chatcmpl-mock", "object": form, "created": CREATED, "model": MODEL}

    def choice(text: str | None, finish: str | None) -> dict[str, Any]:
        if kind == "chat":
            return {
                "index": 0,
                "delta": {"content": text} if text is not None else {},
                "finish_reason": finish,
            }
        return {"index": 0, "text": text or "", "finish_reason": finish}

    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        *(_event({**base, "choices": [choice(f" tok{i % 1000}", None)]}) for i in range(chunks)),
        _event({**base, "choices": [choice(None, "stop")]}),
        _event({**base, "choices": [], "usage": USAGE}),
        _http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n",
    )


@lru_cache
def stream_body(kind: Kind, chunks: int) -> bytes:
    """The streamed response as one piece."""
    return b"".join(stream_parts(kind, chunks))


class MockProvider:
    """The server; `running()` or `open()` starts one.

    `port` is the port it listens on, `served` how many requests it has answered.
    """

    def __init__(self) -> None:
        self.port = 0
        self.served = 0
        self.transports: set[asyncio.Transport] = set()

    @classmethod
    def running(cls, *, port: int = 0) -> AbstractContextManager[MockProvider]:
        """Serve from a thread of its own while the context is open; port 0 picks a free port.

        Raises OSError if the port is taken.
        """
        return running_in_thread(cls.open(port=port))

    @classmethod
    @asynccontextmanager
    async def open(cls, *, port: int = 0) -> AsyncIterator[MockProvider]:
        """Serve from the running event loop while the context is open; port 0 picks a free port.

        Raises OSError if the port is taken.
        """
        provider = cls()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(provider), "127.0.0.1", port, backlog=2048)
        provider.port = server.sockets[0].getsockname()[1]
        try:
            yield provider
        finally:
            server.close()
            for transport in provider.transports:
                transport.abort()
            await asyncio.sleep(0)  # the loop closes the sockets in its next round

    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self.port}/v1"


class _Connection(asyncio.Protocol):
    """One connection: a bare protocol, as streams would cost several times as much."""

    transport: asyncio.Transport

    def __init__(self, provider: MockProvider) -> None:
        self.provider = provider
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's only looks like one
        self.provider.transports.add(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.provider.transports.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            target = self.buffer[: self.buffer.find(b"\r\n")].split(b" ")[1].decode()
            body = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            self._answer(target, body)

    def _answer(self, target: str, body: bytes) -> None:
        self.provider.served += 1
        path, _, query = target.partition("?")
        options = dict(p.split("=", 1) for p in query.split("&") if "=" in p)
        streaming = b'"stream":true' in body.replace(b" ", b"")
        kind: Kind = "chat" if path.endswith("/chat/completions") else "text"
        chunks = int(options.get("chunks", 200))
        if path.endswith("/completions") and streaming and options.get("paced") == "1":
            self._pace(iter(stream_parts(kind, chunks)))
            return
        if path.endswith("/completions"):
            reply = stream_body(kind, chunks) if streaming else whole_body(kind)
        else:
            reply = MODELS if path.endswith("/models") else NOT_FOUND
        delay = float(options.get("delay_ms", 0)) / 1000
        if delay:
            asyncio.get_running_loop().call_later(delay, self._write, reply)
        else:
            self._write(reply)

    def _pace(self, parts: Iterator[bytes]) -> None:
        part = next(parts, None)
        if part is not None and not self.transport.is_closing():
            self.transport.write(part)
            asyncio.get_running_loop().call_soon(self._pace, parts)

    def _write(self, reply: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(reply)


if __name__ == "__main__":
    import sys

    from lmclient.testing.cli import app

    app(["serve", "mock", *sys.argv[1:]], prog_name="python -m lmclient.testing.mock")
