"""The provider `llama-cpp`: a model that runs in this process, behind llama.cpp's own HTTP server."""

from __future__ import annotations

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.profiles.model import ModelProfile
from lmclient.profiles.secrets import MaskedDict
from lmclient.protocols.openai_chat import OpenAIChat
from lmclient.providers.base import ProviderContext
from lmclient.providers.clock import in_time
from lmclient.providers.http import HttpProvider
from lmclient.providers.local import server, weights
from lmclient.providers.text import AUTO, Prompt, TextProvider

NOT_STARTED = "http://127.0.0.1"
"""Stands for the server's URL, whose port is not known before it runs."""


class LocalProvider:
    """Starts the server of a profile's model with its first call; `model` is a name or a path.

    A profile with a `prompt_format` completes text, one without chats.

    The answer is always asked for as a stream, and the prompt's progress with it: llama.cpp goes
    on computing for a caller who has left, unless it is writing to the caller at that time.
    """

    def __init__(self, context: ProviderContext) -> None:
        self._chat = HttpProvider("llama-cpp", OpenAIChat(), context)
        self._text = TextProvider(context, "llama-cpp")
        self._data_dir = context.data_dir

    async def open(self, request: CompletionRequest) -> AsyncCompletionStream:
        http, profile = await in_time(request, self.serving(request.profile))
        stream = await http.open(msgspec.structs.replace(request, profile=profile, stream=True))
        if request.stream:
            return stream
        async with stream:
            completion = await stream.wait()
        return AsyncCompletionStream.of(msgspec.structs.replace(completion, time_to_first_token=None))

    async def serving(self, profile: ModelProfile) -> tuple[HttpProvider, ModelProfile]:
        """Who answers for the profile, and the profile at the server's URL; starts the server."""
        path = weights.resolve(profile.model, self._data_dir)
        url = await server.base_url(path, n_ctx=profile.max_context_length)
        return self._http(profile), _at(profile, url)

    async def prompt(self, request: CompletionRequest) -> Prompt:
        """The prompt of a profile that completes text; only `"auto"` needs the server."""
        profile = _at(request.profile, NOT_STARTED)
        if profile.prompt_format == AUTO:
            _, profile = await self.serving(request.profile)
        return await self._text.prompt(msgspec.structs.replace(request, profile=profile))

    async def models(self, profile: ModelProfile) -> list[str]:
        return [name for name, _ in weights.installed(self._data_dir)]

    async def supports_tools(self, profile: ModelProfile) -> bool:
        return False

    def preview(self, request: CompletionRequest) -> HttpRequest:
        profile = _at(request.profile, NOT_STARTED)
        return self._http(profile).preview(msgspec.structs.replace(request, profile=profile, stream=True))

    async def aclose(self) -> None:
        await self._chat.aclose()
        await self._text.aclose()

    def _http(self, profile: ModelProfile) -> HttpProvider:
        return self._text if profile.prompt_format else self._chat


def _at(profile: ModelProfile, url: str) -> ModelProfile:
    update = {
        "url": url,
        "extra_body": MaskedDict({"return_progress": True, **profile.extra_body}),
        # llama.cpp closes the connection after each stream without saying so; the next call would fail.
        "headers": MaskedDict({**profile.headers, "connection": "close"}),
    }
    return profile.model_copy(update=update)
