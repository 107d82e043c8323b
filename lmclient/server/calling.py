"""Makes the calls of the gateway's callers on its client."""

from __future__ import annotations

import asyncio

import msgspec

from lmclient.client import AsyncClient, CallOptions
from lmclient.core.completion import Completion
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import ConfigurationError, NotFoundError
from lmclient.profiles.directory import Profiles, Target
from lmclient.profiles.model import ModelProfile
from lmclient.server.access import Caller
from lmclient.server.call import Call


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A name that callers may use: a category or a profile, and the profiles behind it, best first."""

    name: str
    is_category: bool
    profiles: tuple[str, ...]


class Calling:
    """The client's calls as requests ask for them, and the names that they may use."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._profiles = Profiles(client.settings)

    def models(self, caller: Caller) -> list[Model]:
        """What the caller may name: the categories, then the profiles.

        Raises `ProfileError` if a profile that may name a category cannot be read.
        """
        categories = self._profiles.categories()
        found = [Model(name=name, is_category=True, profiles=behind) for name, behind in categories.items()]
        taken = {name.lower() for name in categories}
        found += [
            Model(name=name, is_category=False, profiles=(name,))
            for name in self._profiles.files
            if name.lower() not in taken
        ]
        return [model for model in found if caller.may_use(model.name)]

    def profile(self, name: str, caller: Caller) -> ModelProfile:
        """The profile that answers for a name.

        Raises `NotFoundError` for a name that does not exist, `PermissionDeniedError` for one that is
        not the caller's, `ConfigurationError` for one that cannot be used.
        """
        caller.require(name)
        try:
            return self._profiles.resolve(name)[0][0]
        except ConfigurationError:
            models = self.models(caller)
            if any(name == model.name or name.lower() == model.name.lower() for model in models):
                raise
            known = ", ".join(model.name for model in models)
            raise NotFoundError(
                f"There is no model {name!r:.80}; there are {known}.", status=404, code="model_not_found"
            ) from None

    def target(self, call: Call, profile: ModelProfile) -> Target:
        """What to call: the name, or for a raw prompt the profile of that name without a prompt format."""
        if call.raw_prompt and _completes_text(profile):
            return profile.model_copy(update={"prompt_format": "no", "special_tokens": "allow"})
        return call.model

    async def complete(self, call: Call, caller: Caller) -> Completion:
        """The whole answer. Raises what `profile` and `AsyncClient.complete` raise."""
        target = self.target(call, self.profile(call.model, caller))
        return await self._client.complete(target, call.conversation, **_options(call, caller))

    async def open(self, call: Call, caller: Caller) -> tuple[AsyncCompletionStream, float]:
        """The stream of an answer that has begun, and the time of the loop until which it may take.

        Raises what `profile` and `AsyncClient.stream` raise.
        """
        profile = self.profile(call.model, caller)
        until = asyncio.get_running_loop().time() + profile.timeouts.total
        target = self.target(call, profile)
        stream = self._client.stream(target, call.conversation, **_options(call, caller))
        return await stream.__aenter__(), until


def _options(call: Call, caller: Caller) -> CallOptions:
    """The options of the call, with the tags that the caller cannot choose."""
    options = call.options
    options["tags"] = {**(options.get("tags") or {}), **caller.tags}
    return options


def _completes_text(profile: ModelProfile) -> bool:
    return profile.provider == "openai-text" or (
        profile.provider == "llama-cpp" and bool(profile.prompt_format)
    )
