"""The registry: provider name → what makes it. Names are looked up on first use, never on import."""

from __future__ import annotations

import importlib.metadata
import pkgutil
from collections.abc import Callable
from difflib import get_close_matches

from lmclient.errors import ConfigurationError
from lmclient.protocols.base import WireProtocol
from lmclient.providers.base import Provider, ProviderContext, ProviderFactory
from lmclient.providers.http import HttpProvider

ENTRY_POINTS = "lmclient.providers"


PROTOCOLS = {
    "openai-chat": "lmclient.protocols.openai_chat:OpenAIChat",
    "openai-responses": "lmclient.protocols.openai_responses:OpenAIResponses",
    "gemini": "lmclient.protocols.gemini:Gemini",
    "anthropic": "lmclient.protocols.anthropic:Anthropic",
    "ollama": "lmclient.protocols.ollama:Ollama",
}
"""Providers that are a protocol over plain HTTP; what is particular about them is their dialect."""

FACTORIES = {
    "openai-text": "lmclient.providers.text:TextProvider",
    "llama-cpp": "lmclient.providers.local.provider:LocalProvider",
    "azure-openai": "lmclient.providers.azure_openai:AzureOpenAIProvider",
    "azure-ai": "lmclient.providers.azure_ai:AzureAIProvider",
    "openrouter": "lmclient.providers.openrouter:OpenRouterProvider",
}
"""Providers that need more than that."""

_registered: dict[str, ProviderFactory] = {}


def register_provider(name: str, factory: ProviderFactory) -> None:
    """Makes `factory` answer for profiles with this `provider`; an earlier one is replaced.

    A package does the same with an entry point in the group `lmclient.providers` that names the
    factory.
    """
    _registered[name] = factory


def unregister_provider(name: str) -> None:
    """Takes back what `register_provider` did; clients that have made the provider keep it."""
    _registered.pop(name, None)


def create_provider(name: str, context: ProviderContext) -> Provider:
    """A new provider of this name. Raises `ConfigurationError` if there is none."""
    if name in _registered:
        return _registered[name](context)
    factory: ProviderFactory
    if name in FACTORIES:
        factory = pkgutil.resolve_name(FACTORIES[name])
        return factory(context)
    if name in PROTOCOLS:
        protocol: Callable[[], WireProtocol] = pkgutil.resolve_name(PROTOCOLS[name])
        return HttpProvider(name, protocol(), context)
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
        factory = point.load()
        return factory(context)
    close = get_close_matches(name, provider_names(), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ConfigurationError(f"There is no provider {name!r}.{hint} Known: {', '.join(provider_names())}.")


def provider_names() -> list[str]:
    """The names of all providers: built in, registered, and of installed packages."""
    points = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return sorted({*_registered, *FACTORIES, *PROTOCOLS, *(point.name for point in points)})
