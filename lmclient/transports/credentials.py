"""Whose credentials a request carries when it goes through a client that has its own."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lmclient.core.http import SECRET_HEADERS, HttpRequest
from lmclient.transports.base import HttpResponse

CREDENTIALS = ("authorization", "api-key")
"""The headers in which the SDKs of OpenAI and Azure send theirs."""

LONGEST_ERROR = 2**20
"""Bytes of an error's body that are read."""


def instead_of_the_clients(request: HttpRequest, base_url: str) -> dict[str, str] | None:
    """The credentials to send in place of those of the user's client, by header; None for the client's.

    The client's own go to its own server, and to any other for which the profile has none. A profile
    with a key for another server keeps it, so that neither server sees the key of the other. Nothing
    is sent to a server that was only redirected to.
    """
    if request.anonymous:
        return {}
    own = {name: request.headers[name] for name in CREDENTIALS if name in request.headers}
    return own if own and origin(request.url) != origin(base_url) else None


def without_credentials(headers: dict[str, str]) -> dict[str, str]:
    """The headers without `authorization` and `api-key`."""
    return {name: value for name, value in headers.items() if name not in CREDENTIALS}


def origin(url: str) -> str:
    """The server of a URL, without path, query and credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def without_echo(response: HttpResponse, sent: Mapping[str, str]) -> HttpResponse:
    """The response; if it is an error, without the credentials of the request that it repeats.

    Those of a user's client are in no profile, so nobody else could take them out. `sent` are the
    headers of the request as it left.
    """
    if response.status < 400:
        return response
    values = [value for name, value in sent.items() if name.lower() in SECRET_HEADERS]
    secrets = {secret.encode() for value in values for secret in (value, value.rpartition(" ")[2]) if secret}
    return _WithoutEcho(response, sorted(secrets, key=len, reverse=True))


class _WithoutEcho:
    """An error whose body is read as a whole, since a secret may be cut anywhere."""

    def __init__(self, response: HttpResponse, secrets: list[bytes]) -> None:
        self._response = response
        self._secrets = secrets
        self._read = False
        self.status = response.status
        self.headers = response.headers

    @property
    def at_end(self) -> bool:
        return self._read

    async def read(self) -> bytes:
        if self._read:
            return b""
        body = b""
        while len(body) < LONGEST_ERROR and (piece := await self._response.read()):
            body += piece
        self._read = True
        for secret in self._secrets:
            body = body.replace(secret, b"***")
        return body

    async def aclose(self) -> None:
        await self._response.aclose()

    def abort(self) -> None:
        self._response.abort()
