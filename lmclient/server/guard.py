"""What stands before everything that the gateway serves: who asks, from where, and under which name.

A page of another site can make a browser send requests to a server on this machine, and a name that
it owns can be made to point here (DNS rebinding). Hence the checks of `Host` and `Origin`, which hold
for programs as well: they send a loopback host, and no origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmclient.errors import PermissionDeniedError
from lmclient.server.access import Tokens
from lmclient.server.sending import send_error

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""The names under which a server on this machine may be addressed."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""No inline script, nothing from other hosts, no framing."""

SECURITY_HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }.items()
)
"""What every answer carries."""


class Guard:
    """Lets through to `app` what may pass, and tells it who calls (`scope["state"]["caller"]`).

    `hosts` are the allowed names, None for any. `origins` are other sites whose pages may call.
    `is_public` says of a path whether it is served without a token: files of pages, which a browser
    asks for before anybody can enter one.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens,
        hosts: Iterable[str] | None,
        origins: Iterable[str],
        public_paths: Iterable[str],
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = None if hosts is None else {host.lower().encode() for host in hosts}
        self._origins = {origin.rstrip("/").lower().encode() for origin in origins}
        self._public_paths = tuple(public_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        headers = dict(scope["headers"])
        try:
            self._check_host(headers)
            self._check_origin(headers)
            if not self._is_open(scope):
                scope.setdefault("state", {})["caller"] = self._tokens.caller(
                    headers.get(b"authorization", b"")
                )
        except Exception as error:  # the boundary: a refusal becomes an answer
            await send_error(error, guarded)
            return
        await self._app(scope, receive, guarded)

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").lower()
        if self._hosts is not None and _name(host) not in self._hosts:
            raise PermissionDeniedError(
                f"This server does not answer to the name {host.decode('latin-1')!r:.80}; "
                "allow it with --allow-host or the setting server.allow_hosts.",
                status=403,
                code="host_not_allowed",
            )

    def _check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        origin = headers.get(b"origin")
        if origin is None:
            if headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site") and (
                headers.get(b"sec-fetch-mode") != b"navigate"
            ):
                raise _wrong_origin("another site")
            return
        origin = origin.lower()
        own = origin.partition(b"://")[2] == headers.get(b"host", b"").lower()
        if not own and origin not in self._origins:
            raise _wrong_origin(repr(origin.decode("latin-1"))[:80])

    def _is_open(self, scope: Scope) -> bool:
        """Whether nobody need say who they are: pages' files, and what browsers ask before a request."""
        if scope["method"] == "OPTIONS":
            return True
        path: str = scope["path"]
        return scope["method"] in ("GET", "HEAD") and any(
            path.startswith(public) if public.endswith("/") and public != "/" else path == public
            for public in self._public_paths
        )


def _name(host: bytes) -> bytes:
    """The host without its port."""
    if host.startswith(b"["):
        return host[: host.find(b"]") + 1]
    return host.partition(b":")[0]


def _wrong_origin(origin: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"Pages of {origin} may not call this server; allow them with the setting server.allow_origins.",
        status=403,
        code="origin_not_allowed",
    )
