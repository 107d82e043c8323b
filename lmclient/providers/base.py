"""The contract of a provider, and what its factory is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.profiles.model import ModelProfile
from lmclient.transports.base import Transport


class Provider(Protocol):
    """Answers the requests of all profiles that name it. One instance serves one client.

    Its methods may run concurrently, and on several event loops.
    """

    async def open(self, request: CompletionRequest) -> AsyncCompletionStream:
        """Makes one attempt, without retries, and adds it to `request.attempts`.

        Returns once the first chunk has arrived, or the whole answer if no stream was asked for,
        so that whatever goes wrong before is raised here and may be retried.
        """
        ...

    async def models(self, profile: ModelProfile) -> list[str]:
        """The names of the models that the server offers."""
        ...

    async def supports_tools(self, profile: ModelProfile) -> bool:
        """Whether the profile's model can call tools, as far as is known."""
        ...

    def preview(self, request: CompletionRequest) -> HttpRequest:
        """The HTTP request that `open` would send, without sending it."""
        ...

    async def aclose(self) -> None:
        """Releases what the provider itself holds on the running event loop."""
        ...


class ProviderContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider may build upon: the client's transport and its directory for data."""

    transport: Callable[[], Transport]
    data_dir: Path


ProviderFactory = Callable[[ProviderContext], Provider]
