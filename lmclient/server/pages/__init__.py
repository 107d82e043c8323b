"""The pages that people see in a browser, and what they are served."""

from __future__ import annotations

from starlette.routing import BaseRoute

routes: list[BaseRoute] = []
"""What the application serves besides the API.

`request.app.state.client` is the `AsyncClient`, `request.state.caller` who asks (an `access.Caller`).
"""

PUBLIC_PATHS: tuple[str, ...] = ("/", "/spend", "/favicon.ico", "/static/")
"""What needs no token: only what tells nothing, since a page asks for the token itself.

One that ends in a slash, other than "/" itself, stands for all that lies below it.
"""
