"""Carries requests through an `httpx2.AsyncClient`; and the reverse, a client on top of a transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import anyio
import httpx2

from lmclient.core.http import SECRET_HEADERS, HttpRequest
from lmclient.errors import ConfigurationError, ConnectError, ConnectTimeoutError, StreamInterruptedError
from lmclient.transports.base import HttpResponse, Transport
from lmclient.transports.credentials import origin, without_echo

NETWORK_ERRORS = (httpx2.RequestError, httpx2.InvalidURL, OSError, anyio.EndOfStream)
"""What httpx2 raises when the network fails; the last two escape from TLS connections."""

CONNECTION_HEADERS = frozenset({"host", "connection", "content-length", "accept-encoding"})


class Httpx2Transport:
    """Carries requests with the user's client, with its headers, auth, proxies, TLS and mocks.

    A key in the profile comes before the client's headers, the client's `auth` before both. The limits
    of time are the profile's, redirects are not followed, and the client stays the user's to close. It
    belongs to the event loop on which it was used first.
    """

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    @property
    def base_url(self) -> str:
        """The server of profiles without a URL; "" if the client has none."""
        return str(self._client.base_url)

    async def send(self, request: HttpRequest) -> HttpResponse:
        client = self._client
        if client.is_closed:
            raise ConfigurationError("The httpx2.AsyncClient given as `transport` is closed; make a new one.")
        try:
            prepared = client.build_request(
                request.method,
                request.url,
                headers=request.headers,
                content=request.body or None,
                timeout=timeout_of(request),
            )
            if request.anonymous:
                for name in SECRET_HEADERS:
                    prepared.headers.pop(name, None)
            auth = None if request.anonymous else httpx2.USE_CLIENT_DEFAULT
            response = await client.send(prepared, stream=True, follow_redirects=False, auth=auth)
        except NETWORK_ERRORS as error:
            raise connect_error(error, request) from error
        return without_echo(Httpx2Response(response), response.request.headers)

    async def aclose(self) -> None:
        return None


class Httpx2Response:
    """An answer of httpx2, read or still to be read."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()
        self._at_end = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def at_end(self) -> bool:
        return self._at_end

    async def read(self) -> bytes:
        try:
            piece = await anext(self._pieces, b"")
        except NETWORK_ERRORS as error:
            server = origin(str(self._response.url))
            raise StreamInterruptedError(f"{server} broke the connection in mid-answer.") from error
        self._at_end = not piece
        return piece

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._response.aclose()

    def abort(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.aclose())


def timeout_of(request: HttpRequest) -> httpx2.Timeout:
    """Only connecting is limited here; the caller watches over the rest."""
    return httpx2.Timeout(None, connect=request.connect_timeout)


def connect_error(error: BaseException, request: HttpRequest) -> ConnectError:
    """The error of a request that got no answer."""
    server = origin(request.url)
    if isinstance(error, httpx2.ConnectTimeout):
        return ConnectTimeoutError(
            f"No connection to {server} within {request.connect_timeout:g} s; "
            "check the url, or raise timeouts.connect of the profile."
        )
    reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    if isinstance(error, httpx2.ConnectError):
        return ConnectError(f"Cannot connect to {server}: {reason}.")
    return ConnectError(f"No answer from {server}: {reason}.")


def client_on(transport: Transport) -> httpx2.AsyncClient:
    """An httpx2 client whose requests the transport carries, for an SDK that wants such a client.

    It holds no connection of its own and need not be closed.
    """
    return httpx2.AsyncClient(transport=_Carrier(transport))


class _Carrier(httpx2.AsyncBaseTransport):
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name not in CONNECTION_HEADERS}
        answer = await self._transport.send(
            HttpRequest(
                method=request.method,
                url=str(request.url),
                headers=headers,
                body=await request.aread(),
                connect_timeout=request.extensions.get("timeout", {}).get("connect"),
            )
        )
        # The transport has decompressed the body, and may have joined its pieces anew.
        decoded = ("content-encoding", "content-length", "transfer-encoding")
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in decoded]
        return httpx2.Response(answer.status, headers=kept, stream=_Body(answer))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: HttpResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._answer.read():
            yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()
