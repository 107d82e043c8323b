"""Sends whole answers: JSON, and errors in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import Send

from lmclient.ui.events import encode
from lmclient.ui.openai_errors import OpenAIError

Headers = Sequence[tuple[bytes, bytes]]


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
