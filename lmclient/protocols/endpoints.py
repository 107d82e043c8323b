"""The URL and the headers of a request.

The rule for URLs: one without a path gets the protocol's own prefix (`/v1`, `/v1beta`, …); one with
a path is taken as the prefix as it stands; a trailing slash never matters; one that already ends in
the endpoint is accepted. A query in the URL is kept, and the profile's `extra_query` is added.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from lmclient.errors import ProfileError
from lmclient.protocols.dialect import Dialect

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

USER_AGENT = "lmclient"


class HasPrefix(Protocol):
    """What of a protocol the URL depends on."""

    @property
    def prefix(self) -> str: ...

    @property
    def endpoints(self) -> tuple[str, ...]: ...


def endpoint_url(profile: ModelProfile, protocol: HasPrefix, dialect: Dialect, endpoint: str) -> str:
    """The URL of an endpoint such as "/chat/completions". Raises `ProfileError` for an unusable URL."""
    base = profile.url or dialect.url
    url = _joined(base, protocol.prefix, protocol.endpoints, endpoint)
    if url is None:
        raise ProfileError(
            f"Profile {profile.name!r}: url is {base!r}; expected one that starts with http:// or https://.",
            key="url",
            expected="a URL with http:// or https://",
        )
    if profile.extra_query:
        parts = urlsplit(url)
        query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *profile.extra_query.items()])
        url = urlunsplit(parts._replace(query=query))
    return url


@lru_cache(maxsize=256)
def _joined(base: str, prefix: str, endpoints: tuple[str, ...], endpoint: str) -> str | None:
    scheme, host, path, query, _ = urlsplit(base)
    if scheme not in ("http", "https") or not host:
        return None
    path = path.rstrip("/")
    for known in endpoints:
        path = path.removesuffix(known)
    return urlunsplit((scheme, host, (path or prefix).rstrip("/") + endpoint, query, ""))


def request_headers(
    profile: ModelProfile, dialect: Dialect, *, stream: bool = False, body: bool = True
) -> dict[str, str]:
    """The headers of a request, with the key under the name that the dialect gives it."""
    headers = {"accept": "text/event-stream" if stream else "application/json", "user-agent": USER_AGENT}
    if body:
        headers["content-type"] = "application/json"
    if profile.api_key is not None and (key := profile.api_key.get_secret_value()):
        if dialect.auth == "bearer":
            headers["authorization"] = f"Bearer {key}"
        else:
            headers[dialect.auth] = key
    for name, value in profile.headers.items():
        headers[name.lower()] = value
    return headers
