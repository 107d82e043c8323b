"""Requests and the rest of a chain, for interceptors on their own."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from lmclient import (
    AsyncCompletionStream,
    Attempt,
    Chunk,
    Completion,
    CompletionRequest,
    Conversation,
    ModelProfile,
    Options,
    ProviderLimits,
    Usage,
)

Next = Callable[[CompletionRequest], Awaitable[AsyncCompletionStream]]


def profile(name: str = "p", **values: Any) -> ModelProfile:
    return ModelProfile(**{"name": name, "provider": "openai-chat", "model": "mock", **values})


def request(
    asked: ModelProfile | None = None,
    *,
    max_tokens: int | None = None,
    extra_body: dict[str, Any] | None = None,
    **values: Any,
) -> CompletionRequest:
    return CompletionRequest(
        profile=asked or profile(),
        conversation=Conversation.create("hi"),
        options=Options(max_tokens=max_tokens, extra_body=extra_body or {}),
        **values,
    )


def answer(asked: CompletionRequest, *, error: BaseException | None = None, **values: Any) -> Attempt:
    """Books an attempt, as a provider does."""
    completion = None if error else Completion(profile=asked.profile.name, **values)
    attempt = Attempt(
        profile=asked.profile, started=datetime.datetime.now(datetime.UTC), completion=completion, error=error
    )
    asked.attempts.append(attempt)
    return attempt


def answering(
    *outcomes: BaseException | Usage | None,
    limits: ProviderLimits | None = None,
    cost: Decimal | None = None,
) -> tuple[Next, list[CompletionRequest]]:
    """A provider with these outcomes, the last one for ever; and the requests that reached it."""
    left = list(outcomes)
    seen: list[CompletionRequest] = []

    async def call_next(asked: CompletionRequest) -> AsyncCompletionStream:
        seen.append(asked)
        outcome = left.pop(0) if len(left) > 1 else (left or [None])[0]
        if isinstance(outcome, BaseException):
            answer(asked, error=outcome).limits = limits
            raise outcome
        attempt = answer(asked, text="hello", usage=outcome or Usage(), requests=1, cost=cost)
        attempt.limits = limits
        assert attempt.completion is not None
        return AsyncCompletionStream.of(attempt.completion, [Chunk(text="hel"), Chunk(text="lo")])

    return call_next, seen


def streamed(call_next: Next) -> Next:
    """The same answers as streams that have yet to be read."""

    async def call(asked: CompletionRequest) -> AsyncCompletionStream:
        return AsyncCompletionStream(await call_next(asked))

    return call
