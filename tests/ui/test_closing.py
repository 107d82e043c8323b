"""What all helpers have in common: the stream is entered, closed, and its errors are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from lmclient import Chunk
from lmclient.core.stream import AsyncCompletionStream
from lmclient.ui import ag_ui_events, openai_sse, sse_response, vercel_ui_stream

Helper = Callable[[AsyncCompletionStream], AsyncGenerator[bytes, None]]
HELPERS = pytest.mark.parametrize("helper", [openai_sse, sse_response, vercel_ui_stream, ag_ui_events])


@HELPERS
async def test_a_reader_who_leaves_closes_the_stream(helper: Helper, whole: Any) -> None:
    pieces = helper(whole.stream())
    while b"Let me" not in await anext(pieces):
        pass
    await pieces.aclose()
    assert whole.closed == 1


@HELPERS
async def test_a_cancelled_reader_closes_the_stream(helper: Helper, whole: Any) -> None:
    waiting = asyncio.Event()

    async def never() -> tuple[Chunk, ...]:
        waiting.set()
        await asyncio.Event().wait()
        return ()

    whole.next_batch = never

    async def read() -> None:
        async for _ in helper(whole.stream()):
            pass

    task = asyncio.create_task(read())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert whole.closed == 1


@HELPERS
async def test_a_whole_answer_is_not_given_up(helper: Helper, whole: Any, read: Any) -> None:
    await read(helper(whole.stream()))
    assert whole.closed == 0


@HELPERS
async def test_an_error_is_told_at_the_end(helper: Helper, broken: Any, read: Any) -> None:
    written = await read(helper(broken.stream()))
    assert b"Let me" in written
    assert b"The line broke." in written


@HELPERS
async def test_an_unexpected_error_tells_nothing(
    helper: Helper, failing: Any, read: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "lmclient.ui"):
        written = await read(helper(failing.stream()))
    assert b"sk-secret-key" not in written
    assert b"failed unexpectedly" in written
    assert len(caplog.records) == 1


@HELPERS
async def test_an_error_before_the_first_chunk_is_told(helper: Helper, read: Any) -> None:
    from lmclient import RateLimitError

    async def start() -> Any:
        raise RateLimitError("Too fast.", status=429)

    assert b"Too fast." in await read(helper(AsyncCompletionStream(start)))


@HELPERS
async def test_every_event_is_one_line_of_data(helper: Helper, whole: Any, read: Any) -> None:
    for event in (await read(helper(whole.stream()))).decode().removesuffix("\n\n").split("\n\n"):
        name, _, data = event.rpartition("\n")
        assert data.startswith("data: ")
        assert name == "" or name.startswith("event: ")


async def test_starlette_serves_a_helper(whole: Any) -> None:
    import httpx2
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    from lmclient.ui import VERCEL_UI_HEADERS

    async def chat(request: object) -> StreamingResponse:
        return StreamingResponse(vercel_ui_stream(whole.stream()), headers=VERCEL_UI_HEADERS)

    app = Starlette(routes=[Route("/chat", chat)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
        answer = await client.get("http://test/chat")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.text.endswith("data: [DONE]\n\n")
