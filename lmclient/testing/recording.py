"""Records real exchanges with providers, for `ReplayProvider` to play.

    async with record("tests/exchanges") as transport, AsyncClient(transport=transport) as client:
        await client.complete("gpt-5-mini", "Name three rivers.")

Each exchange becomes a file in the directory, in the format that `lmclient.testing.replay` describes,
without `expected`. No headers are kept but the content type and retry-after, no query, and no key: what
the request carried as a credential, cookie or name of an organisation is taken out of both bodies, too.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from lmclient.core.http import HttpRequest
from lmclient.core.secrets import is_secret_name
from lmclient.errors import StreamInterruptedError
from lmclient.transports.adapting import adapt
from lmclient.transports.base import HttpResponse, ServerTransport, Transport

if TYPE_CHECKING:
    from lmclient.transports.adapting import TransportLike

PROTOCOLS = (
    (re.compile(r"/chat/completions$"), "openai-chat"),
    (re.compile(r"/completions$"), "openai-text"),
    (re.compile(r"/responses$"), "openai-responses"),
    (re.compile(r"/messages$"), "anthropic-messages"),
    (re.compile(r":(stream)?generateContent$", re.IGNORECASE), "gemini-generate"),
    (re.compile(r"/api/chat$"), "ollama"),
)
"""Which protocol a path belongs to."""

SHORTEST_SECRET = 4
"""Characters of the shortest value that is taken out."""

SHORTEST_IN_BODY = 12
"""The same for fields of a request's body, whose names tell less: `keywords` are no key."""

_ACCOUNT_HEADER = re.compile(r"organi[sz]ation|project|account|tenant|workspace", re.IGNORECASE)
_ACCOUNT_HOST = re.compile(
    r"^[\w-]+(?=\.(?:openai\.azure|cognitiveservices\.azure|services\.ai\.azure|inference\.ai\.azure)\.)"
)
_ACCOUNT_PATH = re.compile(r"(?<=/)(projects|accounts|organizations)/[^/]+")
_KEY_OR_ACCOUNT = re.compile(
    r"\b(?:(?:sk|gsk|xai|pplx)[-_](?=[\w*-]*[\d*])[\w*-]{8,}|AIza[\w-]{20,}|(?:org|proj|user)[-_][A-Za-z0-9]{16,})"
)
"""Keys, also partly masked as providers repeat them in errors, and the ids of accounts."""


def record(path: str | Path, transport: TransportLike | None = None) -> RecordingTransport:
    """A transport that records what it carries into the directory `path`, which is made if need be.

    `transport` carries the requests, and stays its maker's to close; without one it is the default
    transport, closed with the recording one. Give it to a client, whose caller closes it: use it in an
    `async with` block. Files that are there already are kept.
    """
    if transport is None:
        from lmclient.transports.aiohttp import AiohttpTransport

        return RecordingTransport(Path(path), AiohttpTransport(), owned=True)
    inner = adapt(transport)
    if isinstance(inner, ServerTransport):
        return _RecordingServerTransport(Path(path), inner, owned=False)
    return RecordingTransport(Path(path), inner, owned=False)


class RecordingTransport:
    """Carries requests with another transport, and writes each exchange to a file once it is over."""

    def __init__(self, directory: Path, inner: Transport, *, owned: bool) -> None:
        self._directory = directory
        self._inner = inner
        self._owned = owned

    async def send(self, request: HttpRequest) -> HttpResponse:
        response = await self._inner.send(request)
        return _Recorded(request, response, self._directory)

    async def aclose(self) -> None:
        """Closes the default transport; one that was given stays open."""
        if self._owned:
            await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class _RecordingServerTransport(RecordingTransport):
    """The same for a transport that knows its server."""

    @property
    def base_url(self) -> str:
        assert isinstance(self._inner, ServerTransport)
        return self._inner.base_url


class _Recorded:
    """A response that notes which pieces came when."""

    def __init__(self, request: HttpRequest, response: HttpResponse, directory: Path) -> None:
        self._request = request
        self._response = response
        self._directory = directory
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._pieces: list[tuple[float, bytes]] = []
        self._written = False

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def at_end(self) -> bool:
        return self._response.at_end

    async def read(self) -> bytes:
        try:
            piece = await self._response.read()
        except StreamInterruptedError:
            self._write("The connection was lost before the end of the response.")
            raise
        if piece:
            self._pieces.append((round(self._clock() - self._began, 6), piece))
        if not piece or self._response.at_end:
            self._write()
        return piece

    async def aclose(self) -> None:
        self._write("The client left before the end of the response.")
        await self._response.aclose()

    def abort(self) -> None:
        self._write("The client left before the end of the response.")
        self._response.abort()

    def _write(self, note: str = "") -> None:
        if not self._written:
            self._written = True
            exchange = _exchange(self._request, self._response, self._pieces)
            _save(exchange | ({"note": note} if note else {}), self._directory)


def _exchange(
    request: HttpRequest, response: HttpResponse, pieces: list[tuple[float, bytes]]
) -> dict[str, Any]:
    """The exchange in the format of `lmclient.testing.replay`, without secrets."""
    url = urlsplit(request.url)
    secrets = _secrets(request, response)
    body = _without(b"".join(piece for _, piece in pieces).decode("utf-8", "replace"), secrets)
    content_type = response.headers.get("content-type", "application/json")
    sent = _sent(request.body, secrets)
    path = _without(url.path, secrets)
    streamed = "text/event-stream" in content_type
    return {
        "protocol": next((name for pattern, name in PROTOCOLS if pattern.search(path)), ""),
        "host": _ACCOUNT_HOST.sub("example-resource", url.hostname or ""),
        "path": _ACCOUNT_PATH.sub(r"\1/example", path),
        "stream": streamed or "stream" in path or (isinstance(sent, dict) and sent.get("stream") is True),
        "request": sent,
        "response": {
            "status": response.status,
            "content_type": content_type,
            "retry_after": response.headers.get("retry-after"),
            "body": body,
            "timing": [(seconds, len(piece)) for seconds, piece in pieces] if streamed else [],
        },
    }


def _save(exchange: dict[str, Any], directory: Path) -> None:
    """Writes the exchange to a file of a new name."""
    directory.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.-]+", "-", f"{exchange['protocol'] or 'other'}.{exchange['host']}")
    for number in itertools.count():
        name = f"{stem}.{number}"
        try:
            with (directory / f"{name}.json").open("x", encoding="utf-8") as file:
                json.dump({"name": name, **exchange}, file, ensure_ascii=False, indent=1)
        except FileExistsError:
            continue
        return


def _secrets(request: HttpRequest, response: HttpResponse) -> list[str]:
    """What must not be kept, in all the spellings in which it may come back, longest first."""
    url = urlsplit(request.url)
    values = [url.username, url.password]
    for name, value in request.headers.items():
        if is_secret_name(name) or _ACCOUNT_HEADER.search(name):
            values += [value, value.rpartition(" ")[2], *_cookies(value)]
    for name, value in response.headers.items():
        if name.lower() == "set-cookie":
            values += _cookies(value.partition(";")[0])
        elif _ACCOUNT_HEADER.search(name):
            values.append(value)
    values += [value for name, value in parse_qsl(url.query) if is_secret_name(name)]
    values += _secret_fields(_json(request.body))
    spellings = {
        spelling
        for value in values
        if value and len(value) >= SHORTEST_SECRET
        for spelling in (value, unquote(value), quote(value, safe=""), json.dumps(value)[1:-1])
    }
    return sorted(spellings, key=len, reverse=True)


def _cookies(header: str) -> list[str]:
    """The values of the cookies in a header."""
    return [part.partition("=")[2].strip() for part in header.split(";") if "=" in part]


def _secret_fields(value: Any) -> list[str]:
    """The texts in a JSON value whose names say that they are secret."""
    if isinstance(value, list):
        return [text for item in value for text in _secret_fields(item)]
    if not isinstance(value, dict):
        return []
    found: list[str] = []
    for name, item in value.items():
        if isinstance(item, str) and is_secret_name(name):
            last = item.rpartition(" ")[2]
            found += [last] if len(last) >= SHORTEST_IN_BODY else []
        else:
            found += _secret_fields(item)
    return found


def _without(text: str, secrets: list[str]) -> str:
    """The text with secrets starred out. It keeps its length in bytes, to which the timing refers."""
    for secret in secrets:
        text = text.replace(secret, "*" * len(secret.encode()))
    return _KEY_OR_ACCOUNT.sub(lambda match: "*" * len(match[0].encode()), text)


def _sent(body: bytes, secrets: list[str]) -> Any:
    """The body of a request, as JSON where it is JSON."""
    if not body:
        return None
    text = _without(body.decode("utf-8", "replace"), secrets)
    value = _json(text.encode())
    return text if value is None else value


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
