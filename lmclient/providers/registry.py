"""The registry: provider name → what makes it. Names are looked up on first use, never on import."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from difflib import get_close_matches

from lmclient.errors import ConfigurationError
from lmclient.protocols.base import WireProtocol
from lmclient.providers.base import Provider, ProviderContext, ProviderFactory
from lmclient.providers.http import HttpProvider

ENTRY_POINTS = "lmclient.providers"


def _openai_chat() -> WireProtocol:
    from lmclient.protocols.openai_chat import OpenAIChat

    return OpenAIChat()


def _openai_responses() -> WireProtocol:
    from lmclient.protocols.openai_responses import OpenAIResponses

    return OpenAIResponses()


def _gemini() -> WireProtocol:
    from lmclient.protocols.gemini import Gemini

    return Gemini()


def _anthropic() -> WireProtocol:
    from lmclient.protocols.anthropic import Anthropic

    return Anthropic()


def _ollama() -> WireProtocol:
    from lmclient.protocols.ollama import Ollama

    return Ollama()


def _local(context: ProviderContext) -> Provider:
    from lmclient.providers.local.provider import LocalProvider

    return LocalProvider(context)


def _azure_openai(context: ProviderContext) -> Provider:
    from lmclient.providers.azure_openai import AzureOpenAIProvider

    return AzureOpenAIProvider(context)


def _azure_ai(context: ProviderContext) -> Provider:
    from lmclient.providers.azure_ai import AzureAIProvider

    return AzureAIProvider(context)


def _openrouter(context: ProviderContext) -> Provider:
    from lmclient.providers.openrouter import OpenRouterProvider

    return OpenRouterProvider(context)


PROTOCOLS: dict[str, Callable[[], WireProtocol]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "gemini": _gemini,
    "anthropic": _anthropic,
    "ollama": _ollama,
}
"""Providers that are a protocol over plain HTTP; what is particular about them is their dialect."""

FACTORIES: dict[str, ProviderFactory] = {
    "llama-cpp": _local,
    "azure-openai": _azure_openai,
    "azure-ai": _azure_ai,
    "openrouter": _openrouter,
}
"""Providers that need more than that."""

_registered: dict[str, ProviderFactory] = {}


def register_provider(name: str, factory: ProviderFactory) -> None:
    """Makes `factory` answer for profiles with this `provider`; an earlier one is replaced.

    A package does the same with an entry point in the group `lmclient.providers` that names the
    factory.
    """
    _registered[name] = factory


def create_provider(name: str, context: ProviderContext) -> Provider:
    """A new provider of this name. Raises `ConfigurationError` if there is none."""
    if name in _registered:
        return _registered[name](context)
    if name in FACTORIES:
        return FACTORIES[name](context)
    if name in PROTOCOLS:
        return HttpProvider(name, PROTOCOLS[name](), context)
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
        factory: ProviderFactory = point.load()
        return factory(context)
    close = get_close_matches(name, provider_names(), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ConfigurationError(f"There is no provider {name!r}.{hint} Known: {', '.join(provider_names())}.")


def provider_names() -> list[str]:
    """The names of all providers: built in, registered, and of installed packages."""
    points = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return sorted({*_registered, *FACTORIES, *PROTOCOLS, *(point.name for point in points)})
