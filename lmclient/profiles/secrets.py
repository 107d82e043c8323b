"""Values that must not be shown: which names hold them, and mappings whose repr hides them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SECRET_NAME = re.compile(
    r"key|token$|secret|auth|passw|cookie|credential|signature|^sig$|^code$", re.IGNORECASE
)
# "scheme://user:" or, where there is no colon, "scheme://": what precedes a secret and an "@".
_PASSWORD = re.compile(r"(^[\w+.-]*://(?:[^/?#@:]*:)?)[^/?#]*@")
HIDDEN = "***"


def is_secret_name(name: str) -> bool:
    """Whether a header, query parameter or body field of this name usually holds a credential."""
    return _SECRET_NAME.search(name) is not None


class MaskedDict(dict[str, Any]):
    """A dict whose `repr` hides the values of names such as `authorization` or `x-api-key`."""

    def __repr__(self) -> str:
        return repr({name: HIDDEN if is_secret_name(name) else value for name, value in self.items()})

    __str__ = __repr__

    def public(self) -> dict[str, Any]:
        """Only the entries that are not secret."""
        return {name: value for name, value in self.items() if not is_secret_name(name)}


class MaskedUrl(str):
    """A URL whose `repr` hides the password in it; `str` is the URL as it is used."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(public_url(self))


def public_url(url: str) -> str:
    """The URL with its password, and query parameters that hold credentials, replaced by `***`."""
    hidden = _PASSWORD.sub(rf"\1{HIDDEN}@", url, count=1)
    base, mark, query = hidden.partition("?")
    return base + mark + "&".join(_public_parameter(pair) for pair in query.split("&"))


def _public_parameter(pair: str) -> str:
    name, mark, _ = pair.partition("=")
    return name + mark + HIDDEN if mark and is_secret_name(name) else pair


def without_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy for leaving the process: no `api_key`, no secret entry of any mapping in it."""
    return {
        name: MaskedDict(value.public()) if isinstance(value, MaskedDict) else value
        for name, value in values.items()
        if name != "api_key"
    }
