"""Keeps keys out of error messages, also where a provider echoes them."""

from __future__ import annotations

from collections.abc import Iterable

from lmclient.core.http import SECRET_HEADERS
from lmclient.errors import LMClientError, ProviderError
from lmclient.profiles.model import ModelProfile
from lmclient.profiles.secrets import is_secret_name

SHORTEST = 4
"""Characters of the shortest value that is taken for a secret."""


def secrets_of(profile: ModelProfile) -> list[str]:
    """The values in a profile that must not be shown, longest first."""
    values = [] if profile.api_key is None else [profile.api_key.get_secret_value()]
    for table in (profile.headers, profile.extra_query, profile.extra_body):
        for name, value in table.items():
            if isinstance(value, str) and (is_secret_name(name) or name.lower() in SECRET_HEADERS):
                values += [value, value.removeprefix("Bearer ")]
    return sorted((value for value in values if len(value) >= SHORTEST), key=len, reverse=True)


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret replaced by `***`."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def redact_error(error: LMClientError, profile: ModelProfile) -> None:
    """Takes the profile's secrets out of the error's message and fields."""
    secrets = secrets_of(profile)
    if not secrets:
        return
    error.args = tuple(redact(arg, secrets) if isinstance(arg, str) else arg for arg in error.args)
    if isinstance(error, ProviderError):
        error.code = None if error.code is None else redact(error.code, secrets)
        error.request_id = None if error.request_id is None else redact(error.request_id, secrets)
