"""Values that must not be shown: which names hold them, and mappings whose repr hides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmclient.core.secrets import HIDDEN as HIDDEN
from lmclient.core.secrets import is_secret_name as is_secret_name
from lmclient.core.secrets import masked
from lmclient.core.secrets import public_url as public_url


class MaskedDict(dict[str, Any]):
    """A dict whose `repr` hides the values of names such as `authorization` or `x-api-key`."""

    def __repr__(self) -> str:
        return repr(masked(self))

    __str__ = __repr__

    def public(self) -> dict[str, Any]:
        """Only the entries that are not secret, at any depth."""
        public: dict[str, Any] = _without(self)
        return public


class MaskedUrl(str):
    """A URL whose `repr` hides the password in it; `str` is the URL as it is used."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(public_url(self))


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without(inner) for name, inner in value.items() if not is_secret_name(str(name))}
    return [_without(inner) for inner in value] if isinstance(value, list | tuple) else value


def without_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy for leaving the process: no `api_key`, no secret entry of any mapping in it."""
    return {
        name: MaskedDict(value.public()) if isinstance(value, MaskedDict) else value
        for name, value in values.items()
        if name != "api_key"
    }
