"""The rows of the ledger: one for each attempt of a call, made from what the call reports."""

from __future__ import annotations

import asyncio
import datetime
from decimal import Decimal

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.request import Attempt, CompletionRequest
from lmclient.errors import ProviderError, StreamInterruptedError


class SpendRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt as the ledger keeps it; never text of a prompt or an answer, never a key.

    `call_id` is the same for all attempts of a call, `attempt` counts from 1, and `final` is True
    for the last one. `time` is when it started, in UTC; `duration`, `waited` (before it) and
    `time_to_first_token` are seconds. `status` is "finished", "failed", "cancelled" (the caller
    left) or "interrupted" (the answer stopped before its end); `finish_reason` is set for the first,
    `error` (the name of a class) and `http_status` for the others. `cost` is None where no price is
    known or nothing was received, 0 for an answer from the cache, whose `saved_cost` is what it
    would have cost. `inconsistent` marks counts that contradict each other. `conversation_id` is
    `metadata["id"]` of the conversation.
    """

    call_id: str
    attempt: int
    final: bool = True
    time: datetime.datetime
    category: str | None = None
    profile: str
    provider: str
    model: str
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    inconsistent: bool = False
    cost: Decimal | None = None
    currency: str = "USD"
    cost_source: str | None = None
    saved_cost: Decimal | None = None
    duration: float = 0.0
    waited: float = 0.0
    time_to_first_token: float | None = None
    requests: int = 1
    status: str = "finished"
    finish_reason: str | None = None
    error: str | None = None
    http_status: int | None = None
    tags: dict[str, str] = {}
    conversation_id: str | None = None

    @property
    def cached(self) -> bool:
        """Whether the answer came from the cache."""
        return self.cost_source == "cache"


_FREE = Decimal(0)


def records_of(
    request: CompletionRequest, completion: Completion | None = None, first: int = 0
) -> list[SpendRecord]:
    """The records of a call that is over, from its attempt number `first` on.

    `completion` is its answer, which has a record of its own if no attempt gave it (the cache did).
    """
    attempts = request.attempts[first:]
    answered_otherwise = completion is not None and (completion.cached or not attempts)
    last = -1 if answered_otherwise else len(attempts) - 1
    records = [
        _of_attempt(request, attempt, first + index + 1, index == last)
        for index, attempt in enumerate(attempts)
    ]
    if answered_otherwise and completion is not None:
        records.append(_of_answer(request, completion, len(request.attempts) + 1))
    return records


def _of_attempt(
    request: CompletionRequest,
    attempt: Attempt,
    number: int,
    final: bool,
    *,
    profile_name: str = "",
    requests: int = 1,
    saved_cost: Decimal | None = None,
) -> SpendRecord:
    profile, error = attempt.profile, attempt.error
    completion = attempt.completion or Completion(currency=profile.cost.currency)
    usage = completion.usage
    conversation_id = request.conversation.metadata.get("id")
    return SpendRecord(
        call_id=request.id,
        attempt=number,
        final=final,
        time=attempt.started,
        category=request.category,
        profile=profile_name or profile.name,
        provider=profile.provider,
        model=completion.model or profile.model,
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        estimated=usage.estimated,
        inconsistent=bool(completion.metadata.get("usage_inconsistent")),
        cost=_FREE if completion.cached else completion.cost,
        currency=completion.currency,
        cost_source="cache" if completion.cached else completion.cost_source,
        saved_cost=saved_cost,
        duration=attempt.duration,
        waited=attempt.waited,
        time_to_first_token=completion.time_to_first_token,
        requests=requests,
        status="finished" if error is None else _status(error),
        finish_reason=str(completion.finish_reason) if error is None else None,
        error=None if error is None else type(error).__name__,
        http_status=error.status if isinstance(error, ProviderError) else None,
        tags=request.tags,
        conversation_id=None if conversation_id is None else str(conversation_id),
    )


def _of_answer(request: CompletionRequest, completion: Completion, number: int) -> SpendRecord:
    """The record of an answer without an attempt: the cache's, or an interceptor's own."""
    now = datetime.datetime.now(datetime.UTC)
    attempt = Attempt(
        profile=request.profile,
        started=now - datetime.timedelta(seconds=completion.duration),
        duration=completion.duration,
        completion=completion,
    )
    saved = completion.metadata.get("saved_cost") if completion.cached else None
    return _of_attempt(
        request,
        attempt,
        number,
        final=True,
        profile_name=completion.profile,
        requests=0,
        saved_cost=None if saved is None else Decimal(saved),
    )


def _status(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return "interrupted" if isinstance(error, StreamInterruptedError) else "failed"
