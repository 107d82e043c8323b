"""Who may call what: bearer tokens, the names that each may use, and the tags of its calls."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import msgspec

from lmclient.errors import AuthenticationError, PermissionDeniedError
from lmclient.settings import Budget, ServerToken, Settings

TOKEN_TAG = "token"
"""The tag that names the token of a call."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who may call. `allowed` are the names in lower case, None for all of them."""

    tags: dict[str, str] = {}
    allowed: frozenset[str] | None = None

    def may_use(self, *names: str | None) -> bool:
        """Whether one of the names, of a category or a profile, is allowed."""
        return self.allowed is None or any(name and name.lower() in self.allowed for name in names)

    def require(self, *names: str) -> None:
        """Raises `PermissionDeniedError` if none of the names is allowed; the first is what was asked for."""
        if not self.may_use(*names):
            raise PermissionDeniedError(
                f"This token may not use {names[0]!r:.80}.", status=403, code="model_not_allowed"
            )


ANYBODY = Caller()
"""The caller where there are no tokens: somebody on the same machine."""


class Tokens:
    """The bearer tokens of a gateway."""

    def __init__(self, tokens: Sequence[ServerToken]) -> None:
        self._callers = [
            (_digest(token.token.get_secret_value().encode()), _caller(token)) for token in tokens
        ]

    def caller(self, authorization: bytes) -> Caller:
        """The caller with this `Authorization` header. Raises `AuthenticationError`.

        The time it takes tells nothing of the tokens: all of them are compared, as digests.
        """
        if not self._callers:
            return ANYBODY
        scheme, _, given = authorization.partition(b" ")
        digest = _digest(given.strip())
        found = None
        for known, caller in self._callers:
            if hmac.compare_digest(digest, known):
                found = caller
        if found is None or scheme.lower() != b"bearer":
            raise AuthenticationError(
                "A valid bearer token is needed: set it as the API key.", status=401, code="invalid_api_key"
            )
        return found


def with_token_budgets(settings: Settings) -> Settings:
    """The settings with the budgets of all tokens, each of which counts the calls of its token only."""
    budgets = [
        budget.model_copy(update={"tags": {**budget.tags, TOKEN_TAG: token.name}})
        for token in settings.server.tokens
        for budget in token.budgets
    ]
    if not budgets:
        return settings
    all_budgets: tuple[Budget, ...] = (*settings.spend.budgets, *budgets)
    spend = settings.spend.model_copy(update={"budgets": all_budgets})
    return settings.model_copy(update={"spend": spend})


def _caller(token: ServerToken) -> Caller:
    allowed = None if token.categories is None else frozenset(name.lower() for name in token.categories)
    return Caller(tags={**token.tags, TOKEN_TAG: token.name}, allowed=allowed)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
