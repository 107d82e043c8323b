"""The provider `llama-cpp`: a model that runs in this process, behind llama.cpp's own HTTP server."""

from __future__ import annotations

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.openai_chat import OpenAIChat
from lmclient.providers.base import ProviderContext
from lmclient.providers.http import HttpProvider
from lmclient.providers.local import server, weights

NOT_STARTED = "http://127.0.0.1"
"""Stands for the server's URL, whose port is not known before it runs."""


class LocalProvider:
    """Starts the server of a profile's model with its first call; `model` is a name or a path.

    The answer is always asked for as a stream, and the prompt's progress with it: llama.cpp goes
    on computing for a caller who has left, unless it is writing to the caller at that time.
    """

    def __init__(self, context: ProviderContext) -> None:
        self._http = HttpProvider("llama-cpp", OpenAIChat(), context)
        self._data_dir = context.data_dir

    async def open(self, request: CompletionRequest) -> AsyncCompletionStream:
        path = weights.resolve(request.profile.model, self._data_dir)
        url = await server.base_url(path, n_ctx=request.profile.max_context_length)
        streamed = msgspec.structs.replace(request, profile=_at(request.profile, url), stream=True)
        stream = await self._http.open(streamed)
        if request.stream:
            return stream
        async with stream:
            completion = await stream.wait()
        return AsyncCompletionStream.of(msgspec.structs.replace(completion, time_to_first_token=None))

    async def models(self, profile: ModelProfile) -> list[str]:
        return [name for name, _ in weights.installed(self._data_dir)]

    async def supports_tools(self, profile: ModelProfile) -> bool:
        return False

    def preview(self, request: CompletionRequest) -> HttpRequest:
        profile = _at(request.profile, NOT_STARTED)
        return self._http.preview(msgspec.structs.replace(request, profile=profile, stream=True))

    async def aclose(self) -> None:
        await self._http.aclose()


def _at(profile: ModelProfile, url: str) -> ModelProfile:
    body = {"return_progress": True, **profile.extra_body}
    return profile.model_copy(update={"url": url, "extra_body": body})
