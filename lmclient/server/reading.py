"""Reads the body of a request: bounded in size and time, and checked against its API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import msgspec

from lmclient.errors import BadRequestError, LMClientError

READ_TIMEOUT = 30.0
"""Seconds within which a whole body has to come."""

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
T = TypeVar("T")


class Disconnected(Exception):
    """The caller has gone."""


async def read_body(headers: list[tuple[bytes, bytes]], receive: Receive, limit: int) -> bytes:
    """The whole body. Raises `BadRequestError` with the status 413 or 408, and `Disconnected`."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            raise _too_large(limit)
    message = await _next(receive)
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        body = await _rest(body, receive, limit)
    if len(body) > limit:
        raise _too_large(limit)
    return body


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The body as a value. Raises `BadRequestError` naming the field that is wrong."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").removeprefix(".")
        raise BadRequestError(f"{field or 'The body'}: {problem}.") from None
    except RecursionError:
        raise BadRequestError("The body of the request is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadRequestError(f"The body of the request is not JSON: {error}.") from None


async def _rest(body: bytes, receive: Receive, limit: int) -> bytes:
    pieces, size, more = [body], len(body), True
    try:
        async with asyncio.timeout(READ_TIMEOUT):
            while more:
                message = await _next(receive)
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > limit:
                    raise _too_large(limit)
                more = bool(message.get("more_body"))
    except TimeoutError:
        raise BadRequestError(
            f"The body of the request did not come within {READ_TIMEOUT:g} seconds.", status=408
        ) from None
    return b"".join(pieces)


async def _next(receive: Receive) -> MutableMapping[str, Any]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    return message


def _too_large(limit: int) -> LMClientError:
    return BadRequestError(
        f"The body of the request is larger than {limit} bytes.", status=413, code="request_too_large"
    )
