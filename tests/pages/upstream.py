"""A provider whose answers come when the test says so, piece by piece."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

Json = dict[str, Any]
USAGE = {"prompt_tokens": 1200, "completion_tokens": 340, "total_tokens": 1540}
_END = object()


class Upstream:
    """Speaks OpenAI's chat completions; `send` and `finish` are for other threads.

    What is sent goes to the answer under way, or to the next one. `requests` are the bodies so far,
    `left` is set once somebody has gone away before the end of an answer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.url = ""
        self.requests: list[Json] = []
        self.left = threading.Event()
        self._loop = loop
        self._pieces: asyncio.Queue[Any] = asyncio.Queue()

    def send(self, text: str = "", *, reasoning: str = "") -> None:
        """A piece of the answer."""
        delta = {
            name: value for name, value in (("content", text), ("reasoning_content", reasoning)) if value
        }
        self._put({"choices": [{"index": 0, "delta": delta}]})

    def finish(self, reason: str = "stop", *, reasoning_tokens: int = 0, cached_tokens: int = 0) -> None:
        """The end of the answer."""
        usage = {
            **USAGE,
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
        }
        self._put({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        self._put({"choices": [], "usage": usage})
        self._put(_END)

    def say(self, text: str, *, reasoning: str = "") -> None:
        """A whole answer."""
        if reasoning:
            self.send(reasoning=reasoning)
        self.send(text)
        self.finish()

    def reset(self) -> None:
        """Forgets what was sent and asked."""
        self.requests.clear()
        self.left.clear()
        self._loop.call_soon_threadsafe(self._forget)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Answers one request."""
        self.requests.append(await request.json())
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            while (piece := await self._pieces.get()) is not _END:
                event = {"id": "chatcmpl-1", "model": "staged-1", **piece}
                await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            await response.write(b"data: [DONE]\n\n")
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise
        return response

    def _put(self, piece: Any) -> None:
        self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)

    def _forget(self) -> None:
        while not self._pieces.empty():
            self._pieces.get_nowait()


@contextlib.asynccontextmanager
async def open_upstream() -> AsyncIterator[Upstream]:
    """The provider, while it runs."""
    upstream = Upstream(asyncio.get_running_loop())
    app = web.Application()
    app.router.add_post("/v1/chat/completions", upstream.respond)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield upstream
    finally:
        await runner.cleanup()
