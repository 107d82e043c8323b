"""The most that a call may cost, as far as that can be known before it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from lmclient.core.money import EXACT
from lmclient.core.request import CompletionRequest
from lmclient.core.usage import Usage
from lmclient.interceptors.stated import stated_answers, stated_limits
from lmclient.profiles.model import Cost, ModelProfile
from lmclient.spend.costs import Priced, cost_of, terms_of
from lmclient.spend.prices import INPUT_KINDS, MILLION, OUTPUT_KINDS, per_million
from lmclient.tokens.estimate import estimate_tokens, json_bytes, most_tokens

ASSUMED_OUTPUT = 4096
"""Tokens of an answer where neither the call, nor the profile, nor a context length limits it."""
OWN_LIMITS = {"anthropic": 32_768}
"""Tokens of an answer, thinking included, that we allow by ourselves where a provider wants a limit."""


def worst_case(request: CompletionRequest) -> Priced:
    """The most that one attempt at the request's profile may cost, None without a known price.

    That is: all bytes of the prompt as tokens (but no more than the context holds), and as many answers
    as are asked for, each as long as it may be, at the dearest price that the tokens can have: as written
    to a cache, as reasoning, in the service tier that is asked for.
    """
    profile, options = request.profile, request.options
    prompt = most_tokens(request.conversation, options)
    if extra := {**profile.extra_body, **options.extra_body}:
        prompt += json_bytes(extra)
    if profile.max_context_length:
        prompt = min(prompt, profile.max_context_length)
    output = stated_answers(request) * _longest_answer(request)
    return _dearest(Usage(input_tokens=prompt, output_tokens=output), profile, extra)


def _dearest(usage: Usage, profile: ModelProfile, extra: Mapping[str, Any]) -> Priced:
    """The most that so many tokens can cost, of whatever kinds they turn out to be."""
    own = profile.cost
    if own.input is not None or own.output is not None:
        return Priced(_dearest_of(own, usage), "profile", own.currency)
    usual = _dearest_listed(usage, profile, {})
    terms = terms_of({**extra, "service_tier": extra.get("serviceTier", extra.get("service_tier"))})
    if not terms or usual.cost is None:
        return usual
    return max(usual, _dearest_listed(usage, profile, terms), key=lambda priced: priced.cost or 0)


def _dearest_of(own: Cost, usage: Usage) -> Decimal | None:
    """The same by the prices of a profile, in each tier that a prompt up to this one may reach."""
    prompts = [0, *(tier.above_input_tokens + 1 for tier in own.tiers)]
    reached = [tokens for tokens in prompts if tokens <= usage.input_tokens]
    total = Decimal(0)
    for tokens, kinds in ((usage.input_tokens, INPUT_KINDS), (usage.output_tokens, OUTPUT_KINDS)):
        prices = [per_million(own, kind, prompt) for prompt in reached for kind in kinds]
        dearest = max((price for price in prices if price is not None), default=None)
        if tokens and dearest is None:
            return None
        total = EXACT.add(total, EXACT.multiply(tokens, dearest or 0))
    return EXACT.divide(total, MILLION)


def _dearest_listed(usage: Usage, profile: ModelProfile, terms: Mapping[str, str]) -> Priced:
    """The same by the list of prices: the output may all be reasoning, the input may all go to a cache."""
    priced = cost_of(usage, profile, terms=terms)
    if priced.cost is None:
        return priced
    tokens = usage.input_tokens
    total = priced.cost
    for kind in (
        msgspec.structs.replace(usage, reasoning_tokens=usage.output_tokens),
        msgspec.structs.replace(usage, cache_write_tokens=tokens, cache_write_1h_tokens=tokens),
    ):
        other = cost_of(kind, profile, terms=terms).cost or priced.cost
        total = EXACT.add(total, max(Decimal(0), EXACT.subtract(other, priced.cost)))
    return priced._replace(cost=total)


def _longest_answer(request: CompletionRequest) -> int:
    """The tokens of the longest answer; of several limits the most counts."""
    profile, options = request.profile, request.options
    limits = stated_limits(request)
    if limits and all(limits):
        return max(limits)
    if profile.provider in OWN_LIMITS and not limits:
        return OWN_LIMITS[profile.provider]
    if profile.max_context_length:
        prompt = estimate_tokens(request.conversation, options.tools)
        return max(0, profile.max_context_length - prompt)
    return ASSUMED_OUTPUT
