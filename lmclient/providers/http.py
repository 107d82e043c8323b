"""A provider as protocol × transport × dialect."""

from __future__ import annotations

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import BadRequestError, ConfigurationError, ProtocolError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.base import WireProtocol
from lmclient.protocols.dialect import Dialect
from lmclient.providers.base import ProviderContext
from lmclient.providers.clock import in_time
from lmclient.providers.dialects import dialect_for
from lmclient.providers.exchange import Exchange, placed, read_all
from lmclient.transports.base import ServerTransport, Transport


class HttpProvider:
    """Answers requests over HTTP in one wire protocol; the profile's URL picks the dialect.

    A provider that needs more than that overrides `located` or `carrier`.
    """

    def __init__(self, name: str, protocol: WireProtocol, context: ProviderContext) -> None:
        self._name = name
        self._protocol = protocol
        self._transport = context.transport
        self._first_models: dict[ModelProfile, str] = {}

    async def open(self, request: CompletionRequest) -> AsyncCompletionStream:
        if not request.profile.model:
            request = await in_time(request, self._with_model(request))
        request = self._located(request)
        dialect = dialect_for(self._name, request.profile.url)
        http = self._encoded(request, dialect)
        exchange = Exchange(request, self._protocol, self._protocol.decoder(request, dialect))
        await exchange.open(self.carrier(request.profile), http)
        if request.stream:
            return AsyncCompletionStream(exchange)
        return AsyncCompletionStream.of(exchange.result())

    async def models(self, profile: ModelProfile) -> list[str]:
        profile = self.located(profile)
        http = self._protocol.encode_models(profile, dialect_for(self._name, profile.url))
        body = await self.fetch(profile, http)
        try:
            return self._protocol.decode_models(body)
        except ProtocolError as error:
            placed(error, profile)
            raise

    async def fetch(self, profile: ModelProfile, http: HttpRequest) -> bytes:
        """The body of the answer to a request that is no completion, such as the list of models."""
        return await read_all(self.carrier(profile), http, self._protocol, profile)

    async def supports_tools(self, profile: ModelProfile) -> bool:
        return dialect_for(self._name, self.located(profile).url).tools

    def located(self, profile: ModelProfile) -> ModelProfile:
        """The profile with the URL that its requests go to: its own, else that of a user's client."""
        if profile.url or not self._protocol.name.startswith("openai"):
            return profile
        transport = self._transport()
        if isinstance(transport, ServerTransport) and transport.base_url:
            return profile.model_copy(update={"url": transport.base_url})
        return profile

    def carrier(self, profile: ModelProfile) -> Transport:
        """What carries the requests of a profile: the client's transport."""
        return self._transport()

    def preview(self, request: CompletionRequest) -> HttpRequest:
        request = self._located(request)
        return self._encoded(request, dialect_for(self._name, request.profile.url))

    async def aclose(self) -> None:
        return None

    def _encoded(self, request: CompletionRequest, dialect: Dialect) -> HttpRequest:
        try:
            return self._protocol.encode(request, dialect)
        except (TypeError, UnicodeEncodeError) as error:  # both come from writing the JSON
            raise BadRequestError(
                f"Profile {request.profile.name!r}: the request cannot be written as JSON ({error}); "
                "look at the text, the tools and extra_body."
            ) from error

    def _located(self, request: CompletionRequest) -> CompletionRequest:
        profile = self.located(request.profile)
        if profile is request.profile:
            return request
        return msgspec.structs.replace(request, profile=profile)

    async def _with_model(self, request: CompletionRequest) -> CompletionRequest:
        """The request with the server's first model, for a profile that names none."""
        profile = request.profile
        model = self._first_models.get(profile)
        if model is None:
            models = await self.models(profile)
            if not models:
                raise ConfigurationError(
                    f"Profile {profile.name!r} names no model, and its server offers none; set `model`."
                )
            model = self._first_models[profile] = models[0]
        return msgspec.structs.replace(request, profile=profile.model_copy(update={"model": model}))
