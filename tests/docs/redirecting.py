"""Leads the requests of every transport to the model server, whatever vendor they were meant for."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit, urlunsplit

SERVER = "LMCLIENT_DOCS_SERVER"
"""The variable with the URL of the model server."""

LOCAL_SERVERS = (8000, 8080, 11434)
"""Ports at which pages expect a server on the same machine: vLLM, llama.cpp and Ollama."""


def redirected(url: str) -> str:
    """The URL at the model server, or the same URL if it leads to a test server on this machine."""
    parts = urlsplit(url)
    if parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port not in LOCAL_SERVERS:
        return url
    server = urlsplit(os.environ[SERVER])
    return urlunsplit(parts._replace(scheme=server.scheme, netloc=server.netloc))


def redirect() -> None:
    """Changes aiohttp, on which all but httpx2 stand, and httpx2, for the rest of this process."""
    import aiohttp
    import httpx2
    from yarl import URL

    request = aiohttp.ClientSession._request
    handle = httpx2.AsyncHTTPTransport.handle_async_request

    async def to_server(self: Any, method: str, url: Any, **options: Any) -> Any:
        return await request(self, method, URL(redirected(str(url)), encoded=True), **options)

    async def handle_at_server(self: Any, sent: Any) -> Any:
        sent.url = httpx2.URL(redirected(str(sent.url)))
        return await handle(self, sent)

    aiohttp.ClientSession._request = to_server  # type: ignore[method-assign]  # the point of this function
    httpx2.AsyncHTTPTransport.handle_async_request = handle_at_server  # type: ignore[method-assign]  # likewise
