"""Reads HTTP/1.1 requests (RFC 9112) for the test servers: content-length and chunked bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass


class BadRequest(Exception):
    """The client sent something that is not HTTP/1.1 as these servers speak it."""


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it arrived; header names are in lower case."""

    method: str
    target: str  # path and query string
    headers: Mapping[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ReceivedRequest | None:
    """The next request of a connection, or None when the client has closed it.

    Raises BadRequest for anything that is not a whole request.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as problem:
        if problem.partial:
            raise BadRequest("connection closed inside a request") from problem
        return None
    except asyncio.LimitOverrunError as problem:
        raise BadRequest("request head too long") from problem
    request_line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    try:
        method, target, _version = request_line.split(" ")
    except ValueError as problem:
        raise BadRequest(f"bad request line {request_line!r}") from problem
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return ReceivedRequest(method.upper(), target, headers, await _read_body(reader, headers))


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    try:
        if "chunked" not in headers.get("transfer-encoding", "").lower():
            return await reader.readexactly(int(headers.get("content-length", 0)))
        body = bytearray()
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        while (await reader.readline()).strip():
            pass  # trailers
        return bytes(body)
    except (ValueError, asyncio.IncompleteReadError) as problem:
        raise BadRequest("bad or truncated request body") from problem
