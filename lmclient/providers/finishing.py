"""From what a decoder has read to a `Completion`: usage where none was reported, and the cost."""

from __future__ import annotations

import msgspec

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.request import CompletionRequest
from lmclient.core.usage import Usage
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.answer import Answer
from lmclient.spend.costs import cost_of, terms_of
from lmclient.spend.prices import is_inconsistent, price


def completion_of(
    answer: Answer,
    request: CompletionRequest,
    duration: float = 0.0,
    time_to_first_token: float | None = None,
) -> Completion:
    """The completion of a finished answer, or of the part of it that has arrived. Times in seconds."""
    profile = request.profile
    usage = usage_of(answer, request)
    when = request.attempts[-1].started if request.attempts else None
    terms = terms_of(answer.metadata) if answer.metadata else {}
    priced = cost_of(
        usage,
        profile,
        stated=answer.cost,
        currency=answer.currency,
        model=answer.model,
        when=when,
        terms=terms,
    )
    if is_inconsistent(usage):
        answer.metadata["usage_inconsistent"] = True
    if answer.cost is not None:
        _note_own_price(answer, usage, profile)
    reason = answer.outcome()
    if reason is FinishReason.LENGTH and (limit := max_tokens_of(request)):
        answer.metadata["max_tokens"] = limit
    return Completion(
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls(),
        finish_reason=reason,
        usage=usage,
        cost=priced.cost,
        cost_source=priced.source,
        currency=priced.currency,
        model=answer.model or profile.model,
        profile=profile.name,
        category=request.category,
        id=answer.id,
        provider_items=tuple(answer.provider_items),
        requests=len(request.attempts),
        duration=duration,
        time_to_first_token=time_to_first_token,
        metadata=answer.metadata,
    )


def max_tokens_of(request: CompletionRequest) -> int:
    """The limit of output tokens in force; 0 is the server's own."""
    own = request.options.max_tokens
    return (request.profile.max_tokens if own is None else own) or 0


def _note_own_price(answer: Answer, usage: Usage, profile: ModelProfile) -> None:
    """A cost that the provider states does not hide what the profile's prices say."""
    if profile.cost.currency == answer.currency:
        computed = price(usage, profile.cost)
        if computed is not None:
            answer.metadata["computed_cost"] = str(computed)  # as it is after a trip through JSON


def usage_of(answer: Answer, request: CompletionRequest) -> Usage:
    """What the provider counted; what it did not count is estimated from the text.

    Of an answer that is not whole the output was counted too early, if at all; unless the server counts
    with each piece, as vLLM and Gemini do.
    """
    usage = answer.usage
    if usage is None:
        return estimated_usage(request, answer)
    counts_output = answer.counts_output and (
        answer.finish_reason is not None
        or (usage.output_tokens > 0 and answer.pieces - answer.counted_pieces <= 1)
    )
    if answer.counts_input and counts_output:
        return usage
    least, changed = estimated_usage(request, answer), {}
    if not answer.counts_input and least.input_tokens > usage.input_tokens:
        changed["input_tokens"] = least.input_tokens
    if not counts_output and least.output_tokens > usage.output_tokens:
        changed["output_tokens"] = least.output_tokens
        changed["reasoning_tokens"] = max(least.reasoning_tokens, usage.reasoning_tokens)
    return msgspec.structs.replace(usage, **changed, estimated=True) if changed else usage


def estimated_usage(request: CompletionRequest, answer: Answer) -> Usage:
    """The tokens of the prompt and of what was received, counted without the model's tokenizer."""
    from lmclient.tokens import get
    from lmclient.tokens.estimate import estimate_tokens

    count = get("fallback").count
    reasoning = count(answer.reasoning)
    calls = sum(count(call.name) + count(call.raw_arguments) for call in answer.tool_calls())
    return Usage(
        input_tokens=estimate_tokens(request.conversation, request.options.tools),
        output_tokens=count(answer.text) + reasoning + calls,
        reasoning_tokens=reasoning,
        estimated=True,
    )
