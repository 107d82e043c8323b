"""Whose credentials a request carries when it goes through a client that has its own."""

from __future__ import annotations

from urllib.parse import urlsplit

from lmclient.core.http import HttpRequest

CREDENTIALS = ("authorization", "api-key")
"""The headers in which the SDKs of OpenAI and Azure send theirs."""


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
