"""What goes over the wire, as values: protocols write them, transports carry them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lmclient.core.secrets import HIDDEN, is_secret_name, public_url

SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie", "set-cookie"}
)
"""The headers that carry credentials, for a carrier that has to replace or drop them."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request. `connect_timeout` is in seconds; its `repr` hides credentials.

    `anonymous` forbids a transport to add credentials of its own: a redirect led to another server.
    """

    method: str = "POST"
    url: str
    headers: dict[str, str] = {}
    body: bytes = b""
    connect_timeout: float | None = None
    anonymous: bool = False

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {public_url(self.url)}, headers={public_headers(self.headers)!r})"


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with credentials replaced by `***`."""
    return {name: HIDDEN if is_secret_name(name) else value for name, value in headers.items()}
