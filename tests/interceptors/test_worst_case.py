"""What one attempt may cost: prices, limits of the answer wherever they are said, several answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from lmclient import CompletionRequest, Conversation, ModelProfile, Options
from lmclient.interceptors.worst_case import ASSUMED_OUTPUT, OWN_LIMITS, worst_case

from .calls import profile

BY_OUTPUT = {"input": "0", "output": "1000000"}
"""A call costs as many dollars as its answer has tokens."""
BY_INPUT = {"input": "1000000", "output": "0"}


def request(asked: ModelProfile, text: str = "hi", **options: Any) -> CompletionRequest:
    return CompletionRequest(
        profile=asked, conversation=Conversation.create(text), options=Options(**options)
    )


def output(
    call: dict[str, Any] | None = None, max_tokens: int | None = None, **values: Any
) -> Decimal | None:
    asked = profile(**{"cost": BY_OUTPUT, **values})
    return worst_case(request(asked, max_tokens=max_tokens, extra_body=call or {})).cost


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 700},
        {"max_completion_tokens": 700},
        {"max_output_tokens": 700.0},
        {"n_predict": "700"},
        {"generationConfig": {"maxOutputTokens": 700}},
        {"options": {"num_predict": 700}},
    ],
)
def test_an_extra_body_may_allow_a_longer_answer(body: dict[str, Any]) -> None:
    assert output(body, max_tokens=100) == 700
    assert output(extra_body=body, max_tokens=100) == 700
    assert output(body) == 700


def test_a_smaller_limit_in_the_extra_body_does_not_lower_the_worst_case() -> None:
    assert output({"max_tokens": 10}, max_tokens=100) == 100


@pytest.mark.parametrize("limit", [None, -1, 0, "all", float("nan"), float("inf"), [1]])
def test_a_limit_that_is_none_leaves_the_answer_to_the_server(limit: object) -> None:
    assert output({"max_tokens": limit}, max_tokens=100) == ASSUMED_OUTPUT
    assert (output({"max_tokens": limit}, max_context_length=900) or 0) > 850


@pytest.mark.parametrize(
    "body", [{"n": 3}, {"best_of": 3}, {"n": 2, "best_of": 3}, {"generationConfig": {"candidateCount": 3}}]
)
def test_each_answer_counts(body: dict[str, Any]) -> None:
    assert output(body, max_tokens=100) == 300
    assert output(extra_body=body, max_tokens=100) == 300


@pytest.mark.parametrize("n", [None, 0, -2, "many"])
def test_one_answer_is_the_least(n: object) -> None:
    assert output({"n": n}, max_tokens=100) == 100


def test_where_the_provider_wants_a_limit_it_is_the_one_that_is_sent() -> None:
    assert output(provider="anthropic", max_context_length=200_000) == OWN_LIMITS["anthropic"]
    assert output(provider="anthropic", max_tokens=100) == 100


def test_the_context_bounds_the_prompt() -> None:
    asked = profile(cost=BY_INPUT, max_context_length=1000)
    assert worst_case(request(asked, "a" * 900)).cost == pytest.approx(Decimal(972), abs=20)
    assert worst_case(request(asked, "a" * 5000)).cost == 1000


def test_what_an_extra_body_adds_to_the_prompt_counts() -> None:
    asked = profile(cost=BY_INPUT)
    more = worst_case(request(asked, extra_body={"documents": ["x" * 2000]})).cost or 0
    assert more > 2000 + (worst_case(request(asked)).cost or 0)


@pytest.mark.parametrize(("dearer", "factor"), [("cache_write", 2), ("cache_write_1h", 3)])
def test_the_prompt_may_all_be_written_to_a_cache(dearer: str, factor: int) -> None:
    plain = worst_case(request(profile(cost=BY_INPUT))).cost or 0
    cost = {**BY_INPUT, dearer: f"{factor}000000"}
    assert worst_case(request(profile(cost=cost))).cost == factor * plain


def test_the_dearer_service_tier_that_is_asked_for_counts() -> None:
    listed = {"provider": "openai-chat", "model": "gpt-5", "max_context_length": 1_000}
    usual, flex, priority = (
        worst_case(request(ModelProfile(**listed, extra_body=body))).cost or 0
        for body in ({}, {"service_tier": "flex"}, {"service_tier": "priority"})
    )
    assert usual > 0
    assert usual <= flex < usual * 2 <= priority


def test_the_answer_may_all_be_reasoning() -> None:
    assert output(max_tokens=100, cost={**BY_OUTPUT, "reasoning": "3000000"}) == 300


@pytest.mark.parametrize(
    ("cost", "most"),
    [
        ({"input": "1", "cached_input": "5", "output": "0"}, "5"),
        ({"input": "1", "cache_write": "5", "cache_write_1h": "2", "output": "0"}, "5"),
        ({"input": "5", "output": "0", "tiers": [{"above_input_tokens": 100, "input": "1"}]}, "5"),
        ({"input": "1", "output": "0", "tiers": [{"above_input_tokens": 100, "cached_input": "5"}]}, "5"),
        ({"input": "1", "output": "0", "tiers": [{"above_input_tokens": 9999, "input": "5"}]}, "1"),
    ],
    ids=["cached", "written", "cheaper when longer", "tier of cached ones", "tier out of reach"],
)
def test_the_dearest_price_that_the_prompt_can_have_counts(cost: dict[str, Any], most: str) -> None:
    asked = profile(cost=cost, max_context_length=1000, max_tokens=1)
    assert worst_case(request(asked, "x" * 5000)).cost == Decimal(most) / 1000


def test_an_output_that_is_cheaper_after_a_longer_prompt_counts_in_full() -> None:
    cost = {**BY_OUTPUT, "tiers": [{"above_input_tokens": 10, "output": "1"}]}
    assert output(max_tokens=100, cost=cost) == 100
