"""A way to a real Redis on which answers get lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class Proxy:
    """Carries what goes to and from a Redis. `url` leads to it.

    With `loses` the next answer to a script is lost once, and its connection closed (`"closing"`) or
    left silent (`"silent"`).
    """

    def __init__(self, redis_url: str) -> None:
        self._port = urlsplit(redis_url).port
        self.loses: str | None = None
        self.url = ""

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            while request := await reader.read(2**16):
                requests.write(request)
                answer = await answers.read(2**16)
                if self.loses and b"EVALSHA" in request:
                    how, self.loses = self.loses, None
                    if how == "closing":
                        return
                    await reader.read()
                writer.write(answer)
        except ConnectionError:
            pass
        finally:
            requests.close()
            writer.close()


@contextlib.asynccontextmanager
async def running(redis_url: str) -> AsyncIterator[Proxy]:
    """A proxy while the context is open."""
    proxy = Proxy(redis_url)
    server = await asyncio.start_server(proxy.carry, "127.0.0.1", 0)
    proxy.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    yield proxy
    server.close()
