"""The providers of one client: made when first needed, sharing one transport."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from pathlib import Path

import msgspec

from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import LMClientError
from lmclient.profiles.model import ModelProfile
from lmclient.providers.base import Provider, ProviderContext
from lmclient.providers.fitting import open_fitting
from lmclient.providers.registry import create_provider
from lmclient.transports.base import HttpOptions, Transport


class ProviderPool:
    """Finds the provider of a request. A `transport` that is given stays its maker's to close."""

    def __init__(self, http: HttpOptions, data_dir: Path, transport: Transport | None = None) -> None:
        self._http = http
        self._data_dir = data_dir
        self._given = transport
        self._own: Transport | None = None
        self._providers: dict[str, Provider] = {}
        self.closed = False

    def open(self, request: CompletionRequest) -> Awaitable[AsyncCompletionStream]:
        """One attempt at the provider of the request's profile: the end of every chain."""
        provider = self._providers.get(request.profile.provider)
        if provider is None or self.closed:
            provider = self.provider(request.profile)
        return open_fitting(provider, request)

    def provider(self, profile: ModelProfile) -> Provider:
        """The provider that the profile names. Raises `ConfigurationError` if there is none."""
        self.check_open()
        provider = self._providers.get(profile.provider)
        if provider is None:
            context = ProviderContext(transport=self._transport, data_dir=self._data_dir)
            provider = self._providers[profile.provider] = create_provider(profile.provider, context)
        return provider

    def fingerprint(self, request: CompletionRequest) -> str:
        """A hash of all that can change the answer: the URL and the whole body, but no credentials.

        The same for a stream and a whole answer.
        """
        whole = msgspec.structs.replace(request, stream=False)
        http = self.provider(request.profile).preview(whole)
        parts = (request.profile.provider, http.method, http.url, http.body)
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    def check_open(self) -> None:
        """Raises `LMClientError` once the client is closed."""
        if self.closed:
            raise LMClientError("The client is closed; make a new one.")

    async def aclose(self) -> None:
        """Releases the connections; no provider is made afterwards."""
        self.closed = True
        for provider in self._providers.values():
            await provider.aclose()
        if self._own is not None:
            await self._own.aclose()

    def _transport(self) -> Transport:
        if self._given is not None:
            return self._given
        if self._own is None:
            from lmclient.transports.aiohttp import AiohttpTransport

            self._own = AiohttpTransport(self._http)
        return self._own
