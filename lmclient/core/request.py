"""The request that passes the chain of interceptors down to a provider."""

from __future__ import annotations

import datetime
import math
import random
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from lmclient.core.conversation import Conversation
from lmclient.core.tools import Tool
from lmclient.core.usage import Usage

if TYPE_CHECKING:
    from lmclient.core.completion import Completion
    from lmclient.profiles.model import ModelProfile


ENDLESS = 1e8
"""Seconds from which on a call counts as one without a deadline."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one call. None takes the profile's value, or the provider's default.

    `tool_choice` is "auto", "required", "none" or a tool's name. `response_format` is a type (a
    pydantic model, dataclass, TypedDict or msgspec Struct) or a JSON schema.
    """

    tools: Sequence[Tool] = ()
    tool_choice: str = "auto"
    parallel_tool_calls: bool | None = None
    response_format: Any = None
    max_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    stop: Sequence[str] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    extra_body: dict[str, Any] = {}


class ProviderLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a provider's answer says about its own limits; None where it says nothing.

    `requests_reset` and `tokens_reset` are the seconds until what remains grows again,
    `retry_after` those that it asks to wait.
    """

    remaining_requests: int | None = None
    requests_reset: float | None = None
    remaining_tokens: int | None = None
    tokens_reset: float | None = None
    retry_after: float | None = None


class Attempt(msgspec.Struct, kw_only=True):
    """One try at one provider, successful or not; whoever makes the try fills it in.

    `started` is UTC, `duration` and `waited` (before this try) are seconds. `error` is what it
    failed with, None for success; a stream that the caller left has a `CancelledError`.
    `completion` is the answer, or the part of it that had arrived. `limits` is what the provider
    said about its limits, None if nothing.
    """

    profile: ModelProfile
    started: datetime.datetime
    duration: float = 0.0
    waited: float = 0.0
    completion: Completion | None = None
    error: BaseException | None = None
    limits: ProviderLimits | None = None

    @property
    def usage(self) -> Usage | None:
        """What the attempt used, None if nothing was received."""
        return None if self.completion is None else self.completion.usage


def _new_id() -> str:
    return f"{random.getrandbits(96):024x}"  # a forked child draws other numbers


class CompletionRequest(msgspec.Struct, kw_only=True):
    """Everything about one call. Interceptors change it with `msgspec.structs.replace`.

    `fallbacks` are the profiles to try when `profile` cannot answer. `id` is the same for all
    attempts of one call. `deadline` is a `time.monotonic()` value, after which the call has failed.
    `attempts` grows by one with each try, also with those of every request that was made from this one.
    """

    profile: ModelProfile
    conversation: Conversation
    fallbacks: tuple[ModelProfile, ...] = ()
    category: str | None = None
    options: Options = Options()
    stream: bool = False
    skip_cache: bool = False
    tags: dict[str, str] = {}
    deadline: float | None = None
    attempts: list[Attempt] = msgspec.field(default_factory=list)
    id: str = msgspec.field(default_factory=_new_id)


def seconds_left(request: CompletionRequest) -> float | None:
    """The seconds that the call has, None if there is no end to its time, or as good as none."""
    left = math.inf if request.deadline is None else request.deadline - time.monotonic()
    return max(0.0, left) if left < ENDLESS else None


def profiles_of(request: CompletionRequest) -> tuple[ModelProfile, ...]:
    """All profiles that may answer the request."""
    return (request.profile, *request.fallbacks)


def answered_by(request: CompletionRequest, completion: Completion | None) -> ModelProfile:
    """The profile that has answered; of a call that failed, the last that was tried."""
    if completion is not None and completion.profile:
        for profile in profiles_of(request):
            if profile.name == completion.profile:
                return profile
    return request.attempts[-1].profile if request.attempts else request.profile


def own_attempts(request: CompletionRequest) -> CompletionRequest:
    """The request with a list of attempts that gets those alone which are made with it from here on.

    The outer list gets them, too. So whoever counts what a call has used does not count what is made of
    the same request beside it, by an interceptor that calls on twice.
    """
    return msgspec.structs.replace(request, attempts=_OwnAttempts(request.attempts))


class _OwnAttempts(list[Attempt]):
    """The attempts so far, and then only those that are appended here."""

    def __init__(self, outer: list[Attempt]) -> None:
        super().__init__(outer)
        self._outer = outer

    def append(self, attempt: Attempt) -> None:
        super().append(attempt)
        self._outer.append(attempt)

    def extend(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            self.append(attempt)

    def __reduce__(self) -> tuple[type[list[Attempt]], tuple[list[Attempt]]]:
        return list, ([*self],)  # a copy is a list like others
