"""From what a user gives as `transport=` to a `Transport`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmclient.errors import ConfigurationError
from lmclient.transports.base import Transport

if TYPE_CHECKING:
    import httpx2
    import openai
    from azure.ai.inference.aio import ChatCompletionsClient

    TransportLike = Transport | httpx2.AsyncClient | openai.AsyncOpenAI | ChatCompletionsClient
    """What `AsyncClient` and `Client` take as `transport`."""

REPLACEMENTS = {
    ("httpx2", "Client"): "httpx2.AsyncClient",
    ("httpx", "AsyncClient"): "httpx2.AsyncClient",
    ("httpx", "Client"): "httpx2.AsyncClient",
    ("openai", "AzureOpenAI"): "openai.AsyncAzureOpenAI",
    ("openai", "OpenAI"): "openai.AsyncOpenAI",
    ("azure.ai.inference", "ChatCompletionsClient"): "azure.ai.inference.aio.ChatCompletionsClient",
}
"""Clients that cannot carry requests, and the ones to give instead."""


def adapt(transport: TransportLike) -> Transport:
    """The transport itself, or one that carries requests with the client given in its place.

    Decides by the names of the object's classes, so that no library is loaded to compare with.
    Raises `ConfigurationError` for synchronous clients and for anything else.
    """
    given: Any = transport
    for name in map(_public_name, type(given).__mro__):
        if name == ("httpx2", "AsyncClient"):
            from lmclient.transports.httpx2 import Httpx2Transport

            return Httpx2Transport(given)
        if name == ("openai", "AsyncOpenAI"):
            from lmclient.transports.openai_sdk import OpenAITransport

            return OpenAITransport(given)
        if name == ("azure.ai.inference.aio", "ChatCompletionsClient"):
            from lmclient.transports.azure_sdk import AzureTransport

            return AzureTransport(given)
        if name in REPLACEMENTS:
            raise ConfigurationError(
                f"{'.'.join(name)} cannot be a `transport`; give an {REPLACEMENTS[name]}, also to Client."
            )
    if isinstance(given, Transport):
        return given
    raise ConfigurationError(
        f"An object of type {type(given).__name__} cannot be a `transport`; expected an "
        "httpx2.AsyncClient, an openai.AsyncOpenAI, an azure.ai.inference.aio.ChatCompletionsClient, "
        "or an object with the methods of lmclient.transports.base.Transport."
    )


def _public_name(cls: type) -> tuple[str, str]:
    """The package that a class is imported from, and its name."""
    module = cls.__module__
    for package in ("azure.ai.inference.aio", "azure.ai.inference"):
        if module == package or module.startswith(package + "."):
            return package, cls.__name__
    return module.partition(".")[0], cls.__name__
