"""The default transport, on aiohttp: the least CPU per request of the Python HTTP clients."""

from __future__ import annotations

import asyncio
import builtins
import ctypes
import functools
import os
import ssl
import urllib.request
import weakref
from collections.abc import AsyncGenerator, Mapping
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from lmclient.core.http import HttpRequest
from lmclient.errors import ConfigurationError, ConnectError, ConnectTimeoutError, StreamInterruptedError
from lmclient.transports.base import HttpOptions

KEEP_ALIVE = 30.0
"""Seconds that an idle connection is kept."""


class AiohttpTransport:
    """Carries requests with one aiohttp session per event loop.

    A session is closed when its event loop shuts down, so that a client may outlive loops. After
    a fork the child opens connections of its own, since its loop is another one.
    """

    def __init__(self, options: HttpOptions | None = None) -> None:
        self._options = options or HttpOptions()
        self._sessions: dict[asyncio.AbstractEventLoop, _Session] = {}

    async def send(self, request: HttpRequest) -> _Response:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            self._forget_ended_loops()
            session = self._sessions[loop] = _Session(self._options)
            await session.close_with_the_loop()
        return await session.send(request)

    def _forget_ended_loops(self) -> None:
        for loop, session in list(self._sessions.items()):
            if session.closed or loop.is_closed():
                self._sessions.pop(loop, None)

    async def aclose(self) -> None:
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.aclose()


class _Session:
    def __init__(self, options: HttpOptions) -> None:
        self.closed = False
        self._options = options
        self._keeper = self._closing_at_the_end()
        self._proxies: dict[tuple[str, str], str | None] = {}
        self._timeouts: dict[float | None, aiohttp.ClientTimeout] = {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE, ssl=_ssl_context(options)),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        self._session._retry_connection = False  # it would send a GET twice; no option says so
        _keep_through_forks(self)

    async def close_with_the_loop(self) -> None:
        """Has the session closed in `loop.shutdown_asyncgens()`, the one hook that a loop's end has."""
        await anext(self._keeper)

    async def _closing_at_the_end(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            self.closed = True
            await self._session.close()

    async def aclose(self) -> None:
        await self._keeper.aclose()

    async def send(self, request: HttpRequest) -> _Response:
        url = URL(request.url, encoded=True)
        try:
            response = await self._session.request(
                request.method,
                url,
                data=request.body or None,
                headers=request.headers,
                allow_redirects=False,
                proxy=self._proxy(url),
                timeout=self._timeouts.get(request.connect_timeout) or self._timeout(request.connect_timeout),
            )
        except aiohttp.ConnectionTimeoutError as error:
            raise ConnectTimeoutError(
                f"No connection to {_origin(url)} within {request.connect_timeout:g} s; "
                "check the url, or raise timeouts.connect of the profile."
            ) from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise ConnectError(
                f"{_origin(url)} shows a certificate that is not trusted ({_reason(error)}); "
                "set ca_bundle in the settings to the file that vouches for it."
            ) from error
        except aiohttp.ClientHttpProxyError as error:  # its own message holds the proxy's password
            raise ConnectError(
                f"The proxy does not let us through to {_origin(url)}: {error.status} {error.message}."
            ) from None
        except aiohttp.ClientConnectorError as error:
            raise ConnectError(f"Cannot connect to {_origin(url)}: {_reason(error)}.") from error
        except aiohttp.ServerDisconnectedError as error:
            raise ConnectError(f"{_origin(url)} closed the connection without an answer.") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ConnectError(f"No answer from {_origin(url)}: {_reason(error)}.") from error
        return _Response(response)

    def _proxy(self, url: URL) -> str | None:
        if self._options.proxy is not None:
            return self._options.proxy
        key = (url.scheme, url.host or "")
        if key not in self._proxies:
            self._proxies[key] = environment_proxy(*key)
        return self._proxies[key]

    def _timeout(self, connect: float | None) -> aiohttp.ClientTimeout:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect, ceil_threshold=1e9)
        self._timeouts[connect] = timeout
        return timeout


_open_sessions: weakref.WeakSet[_Session] = weakref.WeakSet()


def _keep_through_forks(session: _Session) -> None:
    """Sees to it that a forked child never finalizes the session, not even when it exits.

    The child shares the parent's epoll descriptor: closing the session's sockets there would take
    them out of the parent's event loop, which would then wait for ever.
    """
    _open_sessions.add(session)
    _watch_forks()


@functools.cache  # once per process
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_make_sessions_immortal)


def _make_sessions_immortal() -> None:
    for session in _open_sessions:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))


class _Response:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        try:
            return await self._content.readany()
        except (aiohttp.ClientError, OSError, RuntimeError) as error:  # the last: the session was closed
            # What had arrived before is still in the reader, which gives no more out by itself.
            if rest := self._content._read_nowait(-1):
                return rest
            host = _origin(self._response.url)
            raise StreamInterruptedError(f"{host} broke the connection in mid-answer.") from error

    @property
    def at_end(self) -> bool:
        return self._content.at_eof()

    async def aclose(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self._content.at_eof():  # else the connection has been given back
            self._response.close()


def environment_proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host, as `urllib` reads it."""
    if urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(scheme) or proxies.get("all")


def _ssl_context(options: HttpOptions) -> ssl.SSLContext | bool:
    if not options.tls_verify:
        return False
    if options.ca_bundle is None:
        return True
    try:
        return ssl.create_default_context(cafile=options.ca_bundle)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"ca_bundle {options.ca_bundle!r} cannot be read ({error}); expected a PEM file."
        ) from error


def _origin(url: URL) -> str:
    """The server, without path, query and credentials."""
    parts = urlsplit(str(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _reason(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or error
    if isinstance(inner, builtins.TimeoutError):
        return "time ran out"
    text = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(str(text).split()).rstrip(".")
