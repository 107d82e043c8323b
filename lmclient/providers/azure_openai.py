"""The provider `azure-openai`: OpenAI's chat completions on Azure, with a key or Entra ID.

https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle (the v1 path) and
https://learn.microsoft.com/azure/ai-foundry/openai/reference (deployment paths).
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from lmclient.profiles.model import ModelProfile
from lmclient.profiles.secrets import MaskedDict
from lmclient.protocols.openai_chat import OpenAIChat
from lmclient.providers.azure_auth import EntraCredential, has_credentials, is_plain, token_provider
from lmclient.providers.base import ProviderContext
from lmclient.providers.http import HttpProvider
from lmclient.transports.base import Transport

V1 = "/openai/v1"
DEPLOYMENTS = "/openai/deployments/"
INFERENCE = "/models"
"""The path of Azure AI model inference, which profiles of `azure-ai` name."""


class AzureOpenAIProvider(HttpProvider):
    """Answers over the v1 path, or over deployment paths where the profile's URL names one.

    A URL without a path gets `/openai/v1`; so does the URL of an `azure-ai` profile. `/openai` with
    an api-version is completed to the path of the deployment that `model` names. Without a key the
    openai SDK signs the requests with tokens of Entra ID.
    """

    def __init__(self, context: ProviderContext) -> None:
        super().__init__("azure-openai", OpenAIChat(), context)
        self._entra: Transport | None = None

    async def models(self, profile: ModelProfile) -> list[str]:
        profile = self.located(profile)
        before, deployments, _ = profile.url.partition(DEPLOYMENTS)
        if deployments:  # they list no models; the resource does
            query = urlsplit(profile.url).query
            url = f"{before}/openai" + (f"?{query}" if query else "")
            profile = profile.model_copy(update={"url": url, "model": ""})
        return await super().models(profile)

    def located(self, profile: ModelProfile) -> ModelProfile:
        profile = super().located(profile)
        if not profile.url:
            return profile
        parts = urlsplit(profile.url)
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        if path.endswith(INFERENCE) and DEPLOYMENTS not in path:
            return _moved_to_v1(profile)
        versioned = "api-version" in profile.extra_query or "api-version=" in parts.query
        if not path:
            path = V1
        elif path.endswith("/openai"):
            if not versioned:
                path += "/v1"
            elif profile.model:
                path += f"/deployments/{profile.model}"
        url = urlunsplit(parts._replace(path=path))
        return profile if url == profile.url else profile.model_copy(update={"url": url})

    def carrier(self, profile: ModelProfile) -> Transport:
        transport = super().carrier(profile)
        if has_credentials(profile) or not is_plain(transport):
            return transport
        if self._entra is None:
            self._entra = _signing(profile, transport)
        return self._entra


def _moved_to_v1(profile: ModelProfile) -> ModelProfile:
    """The profile of an `azure-ai` endpoint for the v1 path, which takes no dated api-version."""
    parts = urlsplit(profile.url)
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix(INFERENCE) + V1
    query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "api-version"])
    extra = {name: value for name, value in profile.extra_query.items() if name != "api-version"}
    url = urlunsplit(parts._replace(path=path, query=query))
    return profile.model_copy(update={"url": url, "extra_query": MaskedDict(extra)})


def _signing(profile: ModelProfile, transport: Transport) -> Transport:
    """A transport on which the openai SDK signs requests with tokens of Entra ID."""
    credential = EntraCredential(profile)
    from openai import AsyncOpenAI

    from lmclient.transports.httpx2 import client_on
    from lmclient.transports.openai_sdk import OpenAITransport

    client = AsyncOpenAI(
        base_url=profile.url, api_key=token_provider(credential), http_client=client_on(transport)
    )
    return OpenAITransport(client)
