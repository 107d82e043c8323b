"""The provider `openai-text`: text completion through prompt formats."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from lmclient import prompts
from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import ConfigurationError, ProfileError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.openai_text import OpenAIText, ServedFormat, prompt_of, refuse_unsupported
from lmclient.providers.base import ProviderContext
from lmclient.providers.clock import in_time
from lmclient.providers.dialects import dialect_for
from lmclient.providers.http import HttpProvider
from lmclient.providers.llama_server import LlamaServer

AUTO = "auto"
"""The prompt format that stands for the template of the llama.cpp server's own model."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as it is sent; `bos` is what the server puts in front of it, "" for nothing."""

    text: str
    bos: str
    served: ServedFormat


@runtime_checkable
class WritesPrompts(Protocol):
    """A provider that can tell the raw prompt of a request."""

    async def prompt(self, request: CompletionRequest) -> Prompt:
        """The prompt. Raises `ProfileError` if the profile has no usable prompt format."""
        ...


class TextProvider(HttpProvider):
    """Answers over `/completions`; the profile's `prompt_format` makes the prompt.

    The template of `"auto"` is asked for once per profile. As a preview needs no server, it then
    shows the messages instead of the prompt.
    """

    def __init__(self, context: ProviderContext, name: str = "openai-text") -> None:
        super().__init__(name, OpenAIText(self._format), context)
        self._shown = HttpProvider(name, OpenAIText(_declared), context)
        self._own: dict[ModelProfile, ServedFormat] = {}

    async def open(self, request: CompletionRequest) -> AsyncCompletionStream:
        if request.profile.prompt_format == AUTO:
            request = await in_time(request, self._with_template(request))
        return await super().open(request)

    async def supports_tools(self, profile: ModelProfile) -> bool:
        return False

    def preview(self, request: CompletionRequest) -> HttpRequest:
        return self._shown.preview(request)

    async def prompt(self, request: CompletionRequest) -> Prompt:
        """The prompt that `open` would send; asks the server only for the template of `"auto"`."""
        refuse_unsupported(request)
        request = self._located(request)
        if request.profile.prompt_format == AUTO:
            request = await self._with_template(request)
        served = self._format(request.profile)
        dialect = dialect_for(self._name, request.profile.url)
        bos = served.format.bos if served.puts_bos(dialect) else ""
        return Prompt(text=prompt_of(request, dialect, served), bos=bos, served=served)

    def _format(self, profile: ModelProfile) -> ServedFormat:
        return _declared(profile) or self._own[profile]

    async def _with_template(self, request: CompletionRequest) -> CompletionRequest:
        """The request for the profile under which its server's template is known."""
        if not request.profile.model:
            request = await self._with_model(request)
        request = self._located(request)
        profile = request.profile
        if profile not in self._own:
            if not profile.url:
                raise _wrong_format(profile, '"auto" asks a llama.cpp server, but the profile has no url')
            self._own[profile] = await LlamaServer(self, profile).format()
        return request


def _declared(profile: ModelProfile) -> ServedFormat | None:
    """The format that the profile names, None for "auto"."""
    name = profile.prompt_format
    if name == AUTO:
        return None
    if not name:
        raise _wrong_format(profile, "it is not set, and text completion needs one")
    try:
        return ServedFormat(prompts.get(name))
    except ConfigurationError as error:
        if name.endswith(".jinja"):
            raise ProfileError(
                f"Profile {profile.name!r}: prompt_format: {error}", key="prompt_format"
            ) from error
        raise _wrong_format(profile, f"there is no {name!r}") from error


def _wrong_format(profile: ModelProfile, problem: str) -> ProfileError:
    known = ", ".join(prompts.names())
    return ProfileError(
        f"Profile {profile.name!r}: prompt_format: {problem}; expected one of {known}, the path of a "
        '.jinja file, or "auto" for the template of a llama.cpp server.',
        key="prompt_format",
        expected="a prompt format",
    )
