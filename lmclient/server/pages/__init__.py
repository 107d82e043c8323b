"""The pages that people see in a browser, and what they are served."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from lmclient.server.pages.files import favicon, page, static_file
from lmclient.server.pages.spend import budgets, overview, records, report

routes: list[BaseRoute] = [
    Route("/", page("chat.html")),
    Route("/spend", page("spend.html")),
    Route("/favicon.ico", favicon),
    Route("/static/{name}", static_file),
    Route("/spend/overview", overview),
    Route("/spend/report", report),
    Route("/spend/records", records),
    Route("/spend/budgets", budgets),
]
"""What the application serves besides the API.

`request.app.state.client` is the `AsyncClient`, `request.state.caller` who asks (an `access.Caller`).
"""

PUBLIC_PATHS: tuple[str, ...] = ("/", "/spend", "/favicon.ico", "/static/")
"""What needs no token: only what tells nothing, since a page asks for the token itself.

One that ends in a slash, other than "/" itself, stands for all that lies below it.
"""
