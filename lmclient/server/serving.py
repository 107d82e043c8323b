"""Runs the gateway in this process: its sockets, and uvicorn behind them."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from lmclient.errors import ConfigurationError
from lmclient.server.app import create_app
from lmclient.settings import Settings

KEEP_ALIVE = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs (5 to 60), so that none
sends its next request into a connection that is just being closed."""
SHUTDOWN = 5
"""Seconds that running answers have to come to their end when the server stops."""


def gateway(host: str, settings: Settings | None = None, *, allow_hosts: Iterable[str] = ()) -> ASGIApp:
    """The application for a server that listens at `host`.

    Raises `ConfigurationError` if that is not loopback and the settings have no tokens.
    """
    settings = Settings() if settings is None else settings
    loopback = all(
        ipaddress.ip_address(address[0].split("%")[0]).is_loopback for _, address in _found(host, 0)
    )
    if not loopback and not settings.server.tokens:
        raise ConfigurationError(
            f"The server would be open to everybody who reaches {host}: "
            "set server.tokens, or listen at 127.0.0.1."
        )
    return create_app(settings, any_host=not loopback, allow_hosts=allow_hosts)


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at all addresses of `host`; port 0 takes a free one, the same for all.

    Raises `ConfigurationError` if there is no such host or the port is taken.
    """
    sockets: list[socket.socket] = []
    try:
        for family, address in _found(host, port):
            listener = socket.socket(family, socket.SOCK_STREAM)
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


def run(app: ASGIApp, sockets: list[socket.socket], started: Callable[[], None]) -> None:
    """Serves until Ctrl-C or SIGTERM, which return; `started` is called once it does."""
    with contextlib.suppress(KeyboardInterrupt):
        _Server(app, started).run(sockets)


@contextlib.asynccontextmanager
async def open_gateway(
    settings: Settings | None = None, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """A gateway on the running event loop, until the context ends: its URL, ending in `/v1`."""
    app = gateway(host, settings)
    sockets = listen(host, port)
    started = asyncio.Event()
    server = _Embedded(app, started.set)
    serving = asyncio.create_task(server.serve(sockets))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield f"http://{host}:{sockets[0].getsockname()[1]}/v1"
    finally:
        waiting.cancel()
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """uvicorn, which says when it has started."""

    def __init__(self, app: ASGIApp, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="auto",
                ws="none",
                lifespan="on",
                log_config=None,
                # It would log a traceback for every answer that the end of the server cuts off; what
                # goes wrong in the application is in our own log.
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=SHUTDOWN,
            )
        )
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to accept connections."""
        await super().startup(sockets)
        self._started()


class _Embedded(_Server):
    """A server beside other work, which leaves the signals of the process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


def _found(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """The addresses of a host, none of them twice. Raises `ConfigurationError`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigurationError(f"There is no host {host!r} to listen at: {error}.") from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))
