"""One API as an ASGI application: reads a request, makes the call, sends the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from starlette.types import Receive, Scope, Send

from lmclient.core.completion import Completion
from lmclient.server.access import Access
from lmclient.server.call import Call, ParseCall
from lmclient.server.reading import MAX_BODY, Disconnected, read_body
from lmclient.ui.events import SSE_HEADERS, encode, events
from lmclient.ui.openai_errors import OpenAIError

logger = logging.getLogger("lmclient.server")

Headers = Sequence[tuple[bytes, bytes]]
_STREAM_HEADERS = [(name.encode(), value.encode()) for name, value in SSE_HEADERS.items()]


class Endpoint:
    """Answers the requests of one API, streamed or not.

    A caller who goes away ends the call, and with it the provider's request. A caller who does not
    read stops the reading from the provider.
    """

    def __init__(self, parse: ParseCall, access: Access, limit: int = MAX_BODY) -> None:
        self._parse = parse
        self._access = access
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope["headers"], receive, self._limit)
        except Disconnected:
            return
        except Exception as error:  # the boundary: what is wrong becomes an answer
            await send_error(error, send)
            return
        await while_connected(self._respond(scope, body, send), receive)

    async def _respond(self, scope: Scope, body: bytes, send: Send) -> None:
        try:
            call = self._parse(body)
            if _without_cache(scope["headers"]):
                call.options["skip_cache"] = True
            if not call.stream:
                completion = await self._access.complete(call, scope)
                answer = encode(call.answer(completion))
        except Exception as error:  # the boundary: what went wrong becomes an answer
            await send_error(error, send)
            return
        if call.stream:
            await self._stream(call, scope, send)
        else:
            await send_json(200, answer, send, _about(completion))

    async def _stream(self, call: Call, scope: Scope, send: Send) -> None:
        try:
            stream = await self._access.open(call, scope)
        except Exception as error:  # the boundary: nothing was sent, so the status can tell
            await send_error(error, send)
            return
        pieces = events(stream, call.writer())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            await pieces.aclose()
            await stream.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def while_connected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Does the work, and cancels it when the caller goes away.

    The work must send the end of its answer last: from then on the connection counts as left.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    def leave(_: asyncio.Task[None]) -> None:
        nonlocal gone
        gone = True
        task.cancel()

    watch = asyncio.create_task(_until_disconnected(receive))
    watch.add_done_callback(leave)
    try:
        await work
    except asyncio.CancelledError:
        if not gone or task.uncancel() > 0:
            raise
    finally:
        watch.remove_done_callback(leave)
        watch.cancel()


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_json(status: int, body: bytes, send: Send, headers: Headers = ()) -> None:
    """Sends a whole answer."""
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_error(error: Exception, send: Send) -> None:
    """Sends an error in OpenAI's shape."""
    answer = OpenAIError(error)
    headers = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
    await send_json(answer.status, encode(answer.body), send, headers)


def _about(completion: Completion) -> Headers:
    headers = [
        (b"x-lmclient-profile", completion.profile.encode("latin-1", "replace")),
        (b"x-lmclient-cached", b"true" if completion.cached else b"false"),
    ]
    if completion.cost is not None:
        headers.append((b"x-lmclient-cost", f"{completion.cost:f}".encode()))
    return headers


def _without_cache(headers: Headers) -> bool:
    return any(name == b"cache-control" and b"no-cache" in value.lower() for name, value in headers)
