"""Entra ID: tokens for Azure where the profile has no key. Needs the package azure-identity."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lmclient.errors import AuthenticationError, ConfigurationError
from lmclient.profiles.model import ModelProfile
from lmclient.transports.base import Transport

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential

SCOPE = "https://cognitiveservices.azure.com/.default"
"""What the tokens are for: all of Azure's AI services."""


def has_credentials(profile: ModelProfile) -> bool:
    """Whether the profile itself says how its requests are signed."""
    signing = ("authorization", "api-key")
    return profile.api_key is not None or any(name.lower() in signing for name in profile.headers)


def is_plain(transport: Transport) -> bool:
    """Whether this is the transport of ours, which signs nothing, and not a client of the user's."""
    from lmclient.transports.aiohttp import AiohttpTransport

    return isinstance(transport, AiohttpTransport)


class EntraCredential:
    """Azure's default chain of credentials: environment, workload identity, CLI login, and so on.

    Asked in a thread, since looking for a credential blocks; so it serves all event loops. It caches
    tokens until shortly before they expire.
    """

    def __init__(self, profile: ModelProfile) -> None:
        try:
            from azure.identity import DefaultAzureCredential
        except ImportError as error:
            raise ConfigurationError(
                f"Profile {profile.name!r} has no api_key, and Entra ID needs the package azure-identity: "
                "set api_key, or `pip install azure-identity`."
            ) from error
        self._credential: TokenCredential = DefaultAzureCredential()

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """A token. Raises `AuthenticationError` if none of the credentials gives one."""
        from azure.core.exceptions import ClientAuthenticationError

        try:
            return await asyncio.to_thread(self._credential.get_token, *scopes, **options)
        except ClientAuthenticationError as error:
            reason = str(error.message).strip().partition("\n")[0]
            raise AuthenticationError(
                f"Entra ID gave no token: {reason} Log in with `az login`, or set the profile's api_key."
            ) from error

    async def close(self) -> None:
        """Nothing to close: the credential holds no connection between calls."""

    async def __aenter__(self) -> EntraCredential:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        return None


def token_provider(credential: EntraCredential) -> Callable[[], Awaitable[str]]:
    """A function that gives a valid token, as the openai SDK takes it for a key."""

    async def token() -> str:
        return (await credential.get_token(SCOPE)).token

    return token
