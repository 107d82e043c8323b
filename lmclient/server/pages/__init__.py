"""The pages that people see in a browser."""

from __future__ import annotations

from starlette.routing import BaseRoute

routes: list[BaseRoute] = []
"""What the application serves besides the API. `request.app.state.client` is the `AsyncClient`."""
