"""The contract of a transport: send one request, read the answer's bytes as they come, close.

A transport knows no model, no profile and no conversation. It translates its library's exceptions:
`ConnectError` until the server has begun to answer, `StreamInterruptedError` after that. Limits of
time other than that of connecting are kept by its caller, who cancels a read that takes too long.
A response with any status is returned, not raised; redirects are not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import msgspec

from lmclient.core.http import HttpRequest


class HttpResponse(Protocol):
    """An answer whose body is still to be read."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; looked up by lower-case names."""
        ...

    @property
    def at_end(self) -> bool:
        """Whether it is already known that the whole body has been read; else `read` will tell."""
        ...

    async def read(self) -> bytes:
        """The next piece of the body, decompressed; empty at the end.

        Raises `StreamInterruptedError` if the connection is lost before the end.
        """
        ...

    async def aclose(self) -> None:
        """Gives the connection back if the body was read to its end, else closes it."""
        ...

    def abort(self) -> None:
        """Closes the connection at once; must be called on the event loop of the request."""
        ...


@runtime_checkable
class Transport(Protocol):
    """What `AsyncClient(transport=…)` takes. May be shared by clients; closed by whoever made it."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Sends the request and returns when the head of the answer is there.

        Raises `ConnectError`, or `TimeoutError` if connecting takes longer than the request allows.
        """
        ...

    async def aclose(self) -> None:
        """Closes all connections of the running event loop."""
        ...


@runtime_checkable
class ServerTransport(Transport, Protocol):
    """A transport that knows a server, as the clients of SDKs do."""

    @property
    def base_url(self) -> str:
        """Where the requests of profiles without a URL go; "" for nowhere."""
        ...


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach servers. `proxy` None takes the environment's (HTTPS_PROXY, NO_PROXY, …)."""

    proxy: str | None = None
    tls_verify: bool = True
    ca_bundle: str | None = None
