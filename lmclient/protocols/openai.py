"""What OpenAI's wires have in common: chat completions, text completions and responses."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.errors import ProtocolError, ProviderError
from lmclient.protocols import provider_errors
from lmclient.protocols.base import WireProtocol, as_dict, decode_json
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.endpoints import endpoint_url, request_headers

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

_encode = msgspec.json.Encoder().encode


class OpenAIProtocol(WireProtocol):
    """A protocol of which only the endpoint, the body of a request and the answer are its own."""

    prefix = "/v1"

    @abc.abstractmethod
    def body(self, request: CompletionRequest, dialect: Dialect) -> dict[str, Any]:
        """The JSON body of a call. Raises as `encode` does."""

    def encode(self, request: CompletionRequest, dialect: Dialect) -> HttpRequest:
        profile = request.profile
        return HttpRequest(
            url=endpoint_url(profile, self, dialect, self.endpoints[0]),
            headers=request_headers(profile, dialect, stream=request.stream),
            body=_encode(self.body(request, dialect)),
            connect_timeout=profile.timeouts.connect,
        )

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return provider_errors.error_from_body(status, headers, body)

    def encode_models(self, profile: ModelProfile, dialect: Dialect) -> HttpRequest:
        return HttpRequest(
            method="GET",
            url=endpoint_url(profile, self, dialect, "/models"),
            headers=request_headers(profile, dialect, body=False),
            connect_timeout=profile.timeouts.connect,
        )

    def decode_models(self, body: bytes) -> list[str]:
        data = decode_json(msgspec.json.Decoder(), body, "a list of models")
        models = data if isinstance(data, list) else as_dict(data).get("data")
        if not isinstance(models, list):
            raise ProtocolError("The server's list of models has no `data`.")
        return [model["id"] for model in models if isinstance(as_dict(model).get("id"), str)]
