"""The files of the pages, served from the package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

DIRECTORY = Path(__file__).parent / "static"
# Stated here because what mimetypes says depends on the machine, and nosniff makes browsers obey.
_MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {"cache-control": "no-cache"}
"""An updated package shows at once."""


def page(name: str) -> Callable[[Request], Awaitable[Response]]:
    """Answers with one file."""

    async def answer(request: Request) -> Response:
        return _file(name)

    return answer


favicon = page("favicon.svg")


async def static_file(request: Request) -> Response:
    """Answers with the file that the path names: a script, a style sheet or an image."""
    name: str = request.path_params["name"]
    if name not in {path.name for path in DIRECTORY.iterdir()}:
        raise HTTPException(404)
    return _file(name)


def _file(name: str) -> Response:
    return FileResponse(DIRECTORY / name, media_type=_MEDIA_TYPES[Path(name).suffix], headers=_HEADERS)
