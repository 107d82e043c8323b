"""One API as an ASGI application: reads a request, makes the call, sends the answer."""

from __future__ import annotations

import asyncio
import logging

from starlette.types import Receive, Scope, Send

from lmclient.core.completion import Completion
from lmclient.server.access import Caller
from lmclient.server.call import Call, ParseCall
from lmclient.server.calling import Calling
from lmclient.server.connection import while_connected
from lmclient.server.reading import Disconnected, read_body
from lmclient.server.sending import Headers, send_error, send_json
from lmclient.ui.events import SSE_HEADERS, encode, events

logger = logging.getLogger("lmclient.server")

GRACE = 5.0
"""Seconds beyond the call's own time that its reader has for the rest."""
_STREAM_HEADERS = [(name.encode(), value.encode()) for name, value in SSE_HEADERS.items()]


class Endpoint:
    """Answers the requests of one API, streamed or not. `limit` is the longest body in bytes.

    A caller who goes away ends the call, and with it the provider's request. A caller who does not
    read stops the reading from the provider, and is left when the time of the call is over.
    """

    def __init__(self, parse: ParseCall, calling: Calling, limit: int) -> None:
        self._parse = parse
        self._calling = calling
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope["headers"], receive, self._limit)
            call = self._parse(body)
        except Disconnected:
            return
        except Exception as error:  # the boundary: what is wrong becomes an answer
            await send_error(error, send)
            return
        if _without_cache(scope["headers"]):
            call.options["skip_cache"] = True
        caller: Caller = scope["state"]["caller"]
        answer = self._stream if call.stream else self._complete
        await while_connected(answer(call, caller, send), receive)

    async def _complete(self, call: Call, caller: Caller, send: Send) -> None:
        try:
            completion = await self._calling.complete(call, caller)
            body = encode(call.answer(completion))
        except Exception as error:  # the boundary: what went wrong becomes an answer
            await send_error(error, send)
        else:
            await send_json(200, body, send, _about(completion))

    async def _stream(self, call: Call, caller: Caller, send: Send) -> None:
        try:
            stream, until = await self._calling.open(call, caller)
        except Exception as error:  # the boundary: nothing was sent, so the status can tell
            await send_error(error, send)
            return
        pieces = events(stream, call.writer())
        try:
            async with asyncio.timeout_at(until + GRACE):
                await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except TimeoutError:
            logger.warning("A caller of %r did not read its answer in time and was left.", call.model)
            return
        finally:
            await pieces.aclose()
            await stream.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


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
