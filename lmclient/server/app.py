"""The gateway as an ASGI application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lmclient.client import AsyncClient
from lmclient.server import pages
from lmclient.server.access import Tokens, with_token_budgets
from lmclient.server.calling import Calling
from lmclient.server.chat import parse_chat
from lmclient.server.completions import parse_completions
from lmclient.server.endpoint import Endpoint
from lmclient.server.guard import LOOPBACK_HOSTS, Guard
from lmclient.server.models import Models
from lmclient.server.responses import parse_response
from lmclient.settings import ServerSettings, Settings
from lmclient.ui.openai_errors import OpenAIError

EXPOSED = ("x-lmclient-cost", "x-lmclient-profile", "x-lmclient-cached", "retry-after")
"""The headers that pages of other sites may read."""


def create_app(
    settings: Settings | None = None, *, any_host: bool = False, allow_hosts: Iterable[str] = ()
) -> Starlette:
    """The gateway to the categories and profiles of the settings, read from the environment if None.

    It answers to loopback names, to those of the settings and to `allow_hosts`; with `any_host` to
    all names as long as none is given, which is for servers with tokens. It closes its client when
    the server shuts down (the lifespan of ASGI).
    """
    settings = with_token_budgets(Settings() if settings is None else settings)
    client = AsyncClient(settings)
    calling = Calling(client)
    given = {*settings.server.allow_hosts, *allow_hosts}

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    app = Starlette(
        routes=[*_api(calling, settings.server), *pages.routes],
        middleware=_middleware(settings.server, None if any_host and not given else LOOPBACK_HOSTS | given),
        exception_handlers={HTTPException: _no_such_path, Exception: _unexpected},
        lifespan=lifespan,
    )
    app.state.client = client
    return app


def _api(calling: Calling, server: ServerSettings) -> list[Route]:
    models = Models(calling)
    return [
        *(
            Route(path, Endpoint(parse, calling, server.max_body), methods=["POST"])
            for path, parse in (
                ("/v1/chat/completions", parse_chat),
                ("/v1/completions", parse_completions),
                ("/v1/responses", parse_response),
            )
        ),
        Route("/v1/models", models, methods=["GET"]),
        Route("/v1/models/{name:path}", models, methods=["GET"]),
    ]


def _middleware(server: ServerSettings, hosts: Iterable[str] | None) -> list[Middleware]:
    guard = Middleware(
        Guard,
        tokens=Tokens(server.tokens),
        hosts=hosts,
        origins=server.allow_origins,
        public_paths=pages.PUBLIC_PATHS,
    )
    if not server.allow_origins:
        return [guard]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=[origin.rstrip("/") for origin in server.allow_origins],
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=EXPOSED,
    )
    return [cors, guard]


async def _no_such_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{error.detail}: {request.method} {request.url.path}"
    body = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": body}, error.status_code, error.headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    """The answer to a mistake of a page's handler, which the log tells of."""
    return JSONResponse(OpenAIError(error).body, 500)
