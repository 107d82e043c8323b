"""The provider `azure-ai`: Azure AI model inference, through azure-ai-inference's own client.

https://learn.microsoft.com/rest/api/aifoundry/modelinference. Azure has retired the service behind
that beta package in favour of the v1 path: with `provider = "azure-openai"` the same profile uses it.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from lmclient.profiles.model import ModelProfile
from lmclient.profiles.secrets import MaskedDict
from lmclient.protocols.openai_chat import OpenAIChat
from lmclient.providers.azure_auth import SCOPE, EntraCredential, has_credentials, is_plain
from lmclient.providers.base import ProviderContext
from lmclient.providers.http import HttpProvider
from lmclient.transports.base import ServerTransport, Transport

API_VERSION = "2024-05-01-preview"
"""The only version that the service has had since; a profile may name another."""

PASS_THROUGH = {"extra-parameters": "pass-through"}
"""Without it the service refuses what its own schema lacks, such as `stream_options`."""


class AzureAIProvider(HttpProvider):
    """Answers through a `ChatCompletionsClient`, whose pipeline signs what our transport carries.

    With the profile's key, or a token of Entra ID if it has none; a `ChatCompletionsClient` given as
    the client's transport is used as it is.
    """

    def __init__(self, context: ProviderContext) -> None:
        super().__init__("azure-ai", OpenAIChat(), context)
        self._pipelines: dict[ModelProfile, Transport] = {}

    def located(self, profile: ModelProfile) -> ModelProfile:
        profile = super().located(profile)
        if not profile.url:
            return profile
        parts = urlsplit(profile.url)
        update: dict[str, object] = {"headers": MaskedDict({**PASS_THROUGH, **profile.headers})}
        if not parts.path.rstrip("/"):
            update["url"] = urlunsplit(parts._replace(path="/models"))
        if "api-version=" not in parts.query:
            update["extra_query"] = MaskedDict({"api-version": API_VERSION, **profile.extra_query})
        return profile.model_copy(update=update)

    def carrier(self, profile: ModelProfile) -> Transport:
        transport = super().carrier(profile)
        if isinstance(transport, ServerTransport):  # a client of the user's, with its own auth
            return transport
        pipeline = self._pipelines.get(profile)
        if pipeline is None:
            pipeline = self._pipelines[profile] = _pipeline(profile, transport)
        return pipeline


def _pipeline(profile: ModelProfile, carrier: Transport) -> Transport:
    from azure.core.credentials import AzureKeyCredential

    from lmclient.transports.azure_sdk import AzurePipeline

    if profile.api_key is not None:
        credential = AzureKeyCredential(profile.api_key.get_secret_value())
        return AzurePipeline(profile.url, credential, carrier, scope=SCOPE)
    if has_credentials(profile) or not is_plain(carrier):
        return carrier
    return AzurePipeline(profile.url, EntraCredential(profile), carrier, scope=SCOPE)
