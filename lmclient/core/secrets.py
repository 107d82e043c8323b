"""What must not be shown: which names hold credentials, and values with those hidden."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET_NAME = re.compile(
    r"key|token$|secret|auth|passw|cookie|credential|signature|^sig$|^code$", re.IGNORECASE
)
# "scheme://user:" or, where there is no colon, "scheme://": what precedes a secret and an "@".
_PASSWORD = re.compile(r"(^[\w+.-]*://(?:[^/?#@:]*:)?)[^/?#]*@")
# Passwords of databases are often not escaped; there is no "@" in what follows them.
_DATABASE_PASSWORD = re.compile(r"(^(?:rediss?|unix|postgres(?:ql)?(?:\+\w+)?)://(?:[^@:/?#]*:)?).*@")
HIDDEN = "***"


def is_secret_name(name: str) -> bool:
    """Whether a header, query parameter or body field of this name usually holds a credential."""
    return _SECRET_NAME.search(name) is not None


def masked(value: object) -> object:
    """The value with every entry hidden that has such a name, at any depth of dicts and lists."""
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if isinstance(name, str) and is_secret_name(name) else masked(inner)
            for name, inner in value.items()
        }
    return [masked(inner) for inner in value] if isinstance(value, list | tuple) else value


def public_url(url: str) -> str:
    """The URL with its password, and query parameters that hold credentials, replaced by `***`."""
    hidden = _DATABASE_PASSWORD.sub(rf"\1{HIDDEN}@", url, count=1)
    hidden = _PASSWORD.sub(rf"\1{HIDDEN}@", hidden, count=1)
    base, mark, query = hidden.partition("?")
    return base + mark + "&".join(_public_parameter(pair) for pair in query.split("&"))


def _public_parameter(pair: str) -> str:
    name, mark, _ = pair.partition("=")
    return name + mark + HIDDEN if mark and is_secret_name(name) else pair
