"""Answers a call that was made before from the cache."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

import msgspec

from lmclient.cache.completions import CompletionCache
from lmclient.cache.entry import is_good, key_of, replayed, separate
from lmclient.core.completion import Completion, chunks_of
from lmclient.core.request import CompletionRequest, profiles_of
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import LMClientError
from lmclient.interceptors.base import CallNext
from lmclient.interceptors.cache_flights import Flight, Flights
from lmclient.profiles.model import ModelProfile
from lmclient.profiles.secrets import MaskedDict, public_url
from lmclient.settings import CacheSettings

Fingerprint = Callable[[CompletionRequest], str]


class CacheInterceptor:
    """Gives the kept answer where the same request was answered before, streamed or not.

    Two requests are the same if all that is sent is the same, the key aside. That holds at any
    temperature: with the cache on, a sampled answer is given again as well (a `seed` asks for
    another one, `skip_cache` for a new one, which is then kept). Only good answers are kept: see
    `lmclient.cache.entry.is_good`. A profile without a `model` is always asked: which model that is,
    its server may decide anew. Equal calls at the same time, on one event loop, make one request.

    A hit costs nothing: `cost` 0, `cost_source` "cache", `requests` 0, `cached` True, and
    `metadata["saved_cost"]` says what the answer had cost. `hits` and `misses` count since the
    interceptor was made. The cache never makes a call fail.
    """

    def __init__(self, settings: CacheSettings, fingerprint: Fingerprint) -> None:
        self.hits = 0
        self.misses = 0
        self._fingerprint = fingerprint
        self._cache = CompletionCache(settings)
        self._flights = Flights()

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        started = time.monotonic()
        key = self._key(request, request.profile)
        if key is None or request.skip_cache:
            return await self._ask(request, call_next, key)
        flight = await self._flights.join(key, request)
        if isinstance(flight, Completion):
            return self._hit(flight, request, started)
        try:
            kept = await self._cache.get(key, request.deadline)
            if kept is None:
                self.misses += 1
                return await self._ask(request, call_next, key, flight)
        except BaseException as error:
            self._flights.land(flight, error)
            raise
        self._flights.land(flight, kept)
        return self._hit(kept, request, started)

    async def aclose(self) -> None:
        """Releases what the cache holds."""
        await self._cache.aclose()

    def _hit(
        self, completion: Completion, request: CompletionRequest, started: float
    ) -> AsyncCompletionStream:
        self.hits += 1
        answer = replayed(completion, request, time.monotonic() - started)
        return AsyncCompletionStream.of(answer, chunks_of(answer) if request.stream else ())

    async def _ask(
        self, request: CompletionRequest, call_next: CallNext, key: str | None, flight: Flight | None = None
    ) -> AsyncCompletionStream:
        """The answer of the rest of the chain, which is kept at its end."""
        stream = await call_next(request)

        async def end(completion: Completion, error: BaseException | None) -> None:
            try:
                if error is None:
                    await self._keep(completion, request, key)
            finally:
                if flight is not None:
                    # What failed half-way may succeed for those to whom nothing was delivered.
                    self._flights.land(flight, separate(completion) if error is None else None)

        if request.stream:
            if flight is not None:
                flight.stream = weakref.ref(stream)
            stream.on_end(end)
            return stream
        completion = await stream.wait()
        await end(completion, None)
        return AsyncCompletionStream.of(completion)

    async def _keep(self, completion: Completion, request: CompletionRequest, key: str | None) -> None:
        """Keeps a good answer under the profile that gave it, which may be a fallback."""
        if not is_good(completion) or not _fits(completion, request.options.response_format):
            return
        for profile in profiles_of(request):
            if profile.name == completion.profile:
                answered = key if profile is request.profile else self._key(request, profile)
                if answered is not None:
                    await self._cache.put(answered, _by_itself(completion), profile, request.deadline)
                return

    def _key(self, request: CompletionRequest, profile: ModelProfile) -> str | None:
        """The key of the request at a profile; None if nothing tells it apart, or it cannot be sent there."""
        if not profile.model:
            return None
        try:
            asked = msgspec.structs.replace(request, profile=_without_credentials(profile))
            return key_of(self._fingerprint(asked), profile)
        except (LMClientError, NotImplementedError):  # the latter: a provider that has no preview
            return None


def _fits(completion: Completion, response_format: Any) -> bool:
    """Whether the answer is of the format that was asked for, if it is to be one by itself."""
    if response_format in (None, {"type": "text"}) or completion.tool_calls:
        return True
    from lmclient.core.structured import parse_completion

    try:
        parse_completion(completion, response_format)
    except Exception:  # also what the application's own validators raise, which is not to come from here
        return False
    return True


def _by_itself(completion: Completion) -> Completion:
    """The answer without what `FallbackInterceptor` noted of this one call."""
    if "fallback_from" not in completion.metadata:
        return completion
    metadata = {name: value for name, value in completion.metadata.items() if name != "fallback_from"}
    return msgspec.structs.replace(completion, metadata=metadata)


def _without_credentials(profile: ModelProfile) -> ModelProfile:
    """The profile with no credential in its URL, so that a new one finds the old answers."""
    if not profile.extra_query and "?" not in profile.url:
        return profile
    query = MaskedDict(MaskedDict(profile.extra_query).public())
    return profile.model_copy(update={"extra_query": query, "url": public_url(profile.url)})
