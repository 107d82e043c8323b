"""The gateway as an ASGI application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.routing import Route

from lmclient.client import AsyncClient
from lmclient.server import pages
from lmclient.server.access import Access
from lmclient.server.chat import parse_chat
from lmclient.server.endpoint import Endpoint
from lmclient.settings import Settings


def create_app(settings: Settings | None = None) -> Starlette:
    """The gateway to the categories and profiles of the settings, read from the environment if None.

    It closes its client when the server shuts down (the lifespan of ASGI).
    """
    client = AsyncClient(settings)
    access = Access(client)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    routes = [Route("/v1/chat/completions", Endpoint(parse_chat, access), methods=["POST"]), *pages.routes]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.client = client
    return app
