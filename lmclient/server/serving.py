"""Runs the gateway in this process: its sockets, and uvicorn behind them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from lmclient.errors import ConfigurationError

SHUTDOWN = 5
"""Seconds that running answers have to come to their end when the server stops."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at all addresses of `host`; port 0 takes a free one, the same for all.

    Raises `ConfigurationError` if there is no such host or the port is taken.
    """
    sockets: list[socket.socket] = []
    try:
        for family, kind, _, _, address in addresses(host, port):
            listener = socket.socket(family, kind)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], port, *address[2:]))
            port = listener.getsockname()[1]
            listener.listen(1024)
            listener.setblocking(False)
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise ConfigurationError(f"The server cannot listen at {host}, port {port}: {error}.") from error
    return sockets


def addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, int, int, str, tuple[str, ...]]]:
    """The addresses of a host. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys(found))  # type: ignore[arg-type]  # an address is a tuple of str and int


class GatewayServer(uvicorn.Server):
    """uvicorn, which says when it has started."""

    def __init__(self, app: ASGIApp, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="auto",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN,
            )
        )
        self._announce = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to accept connections."""
        await super().startup(sockets)
        self._announce()


def serve(app: ASGIApp, sockets: list[socket.socket], started: Callable[[], None]) -> None:
    """Serves until Ctrl-C or SIGTERM, which return."""
    with contextlib.suppress(KeyboardInterrupt):
        GatewayServer(app, started).run(sockets)
