"""Asks the next profile of a category when one cannot answer."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import (
    AuthenticationError,
    BudgetExceededError,
    CircuitOpenError,
    ContextLengthError,
    ContextOverflowError,
    LMClientError,
    NotFoundError,
    PermissionDeniedError,
    ProtocolError,
    RateLimitError,
    RateLimitTimeoutError,
    ServerError,
    TransportError,
)
from lmclient.interceptors.base import CallNext, Forwarding
from lmclient.interceptors.retry import is_retryable
from lmclient.profiles.model import ModelProfile

logger = logging.getLogger("lmclient.fallback")

_REFUSED = (AuthenticationError, PermissionDeniedError)
_TOO_LONG = (ContextLengthError, ContextOverflowError)
# As OpenAI (and whoever follows it), Anthropic, Gemini and llama.cpp write it.
_LIMIT = re.compile(r"(?:context length (?:is|of) |tokens > |tokens allowed \(|context size \()(\d{1,9})")
_CURABLE = (
    *_REFUSED,
    *(TransportError, ServerError, RateLimitError, NotFoundError, ProtocolError),
    *(CircuitOpenError, RateLimitTimeoutError, BudgetExceededError),
)


class FallbackInterceptor(Forwarding):
    """Tries `request.fallbacks` in their order when a profile fails as another may not.

    That is: what retries did not cure, an exhausted quota, a refused key (with a warning in the log:
    someone has to see to it), a missing model, an open circuit, limits without room, and a spent
    budget. A prompt that is too long goes to profiles only whose `max_context_length` is known to be
    longer than this one's, or than the limit that the provider states. Wrong requests and filtered
    prompts go nowhere else, and nothing does once the first chunk has arrived, or after the call's
    deadline, which all profiles share.

    The completion's `profile` is the one that answered; its `metadata["fallback_from"]` lists those
    that failed before. If none answers, the last error is raised, with a note about each other one.
    """

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        if not request.fallbacks:
            return await call_next(request)
        failed: list[tuple[ModelProfile, LMClientError]] = []
        left = [request.profile, *request.fallbacks]
        while True:
            profile = left.pop(0)
            try:
                stream = await call_next(msgspec.structs.replace(request, profile=profile, fallbacks=()))
                break
            except LMClientError as error:
                left = _others(error, profile, left)
                if not left or _is_late(request):
                    _note(error, failed)
                    raise
                _log(error, profile, left[0])
                failed.append((profile, error))
        if failed:
            names = [profile.name for profile, _ in failed]

            async def end(completion: Completion, error: BaseException | None) -> Completion:
                metadata = {**completion.metadata, "fallback_from": names}
                return msgspec.structs.replace(completion, metadata=metadata)

            stream.on_end(end)
        return stream


def _others(error: LMClientError, profile: ModelProfile, left: Sequence[ModelProfile]) -> list[ModelProfile]:
    """Those of the profiles left that may answer what this one could not."""
    if isinstance(error, _TOO_LONG):
        context = profile.max_context_length or _stated_limit(error)
        return [other for other in left if (other.max_context_length or 0) > context]
    return list(left) if isinstance(error, _CURABLE) or is_retryable(error) else []


def _stated_limit(error: LMClientError) -> int:
    """The context length that the error states, else 0."""
    if isinstance(error, ContextOverflowError):
        return error.limit
    said = _LIMIT.search(str(error))
    return int(said[1]) if said else 0


def _is_late(request: CompletionRequest) -> bool:
    return request.deadline is not None and time.monotonic() >= request.deadline


def _log(error: LMClientError, profile: ModelProfile, following: ModelProfile) -> None:
    level = logging.WARNING if isinstance(error, _REFUSED) else logging.INFO
    logger.log(level, "%s; asking profile %r instead.", _line(profile, error), following.name)


def _note(error: LMClientError, failed: Sequence[tuple[ModelProfile, LMClientError]]) -> None:
    for profile, earlier in failed:
        error.add_note(f"Before that, {_line(profile, earlier)}")


def _line(profile: ModelProfile, error: LMClientError) -> str:
    # The messages of our own errors are free of secrets.
    return f"profile {profile.name!r} failed with {type(error).__name__}: {error}"
