"""Keeps keys out of error messages, also where a provider echoes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from lmclient.core.request import CompletionRequest, profiles_of
from lmclient.core.secrets import is_secret_name
from lmclient.errors import LMClientError, ProviderError
from lmclient.profiles.model import ModelProfile

SHORTEST = 4
"""Characters of the shortest value that is taken for a secret."""


def secrets_of(profile: ModelProfile) -> list[str]:
    """The values in a profile that must not be shown, longest first."""
    values = [] if profile.api_key is None else [profile.api_key.get_secret_value()]
    for table in (profile.headers, profile.extra_query, profile.extra_body):
        for value in _secret_values(table):
            values += [value, value.rpartition(" ")[2]]  # "Bearer KEY" is sent, KEY is secret
    values += [quote(value, safe="") for value in values]
    return sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True)


def secrets_in(request: CompletionRequest) -> list[str]:
    """Those of all profiles that may answer the request."""
    return [secret for profile in profiles_of(request) for secret in secrets_of(profile)]


def _secret_values(value: object, secret: bool = False) -> Iterator[str]:
    """The texts at any depth of dicts and lists that have a secret name, or stand below one."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secret_values(inner, secret or is_secret_name(str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secret_values(inner, secret)
    elif secret and isinstance(value, str):
        yield value


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
