"""What later usage objects change, and the costs that providers state."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from lmclient import Usage
from lmclient.protocols.answer import Answer
from lmclient.protocols.openai_usage import read_usage
from lmclient.protocols.stated_usage import read_cost, take_usage

KNOWN = {"prompt_tokens": 1000, "completion_tokens": 500, "cost": 0.5}


def taken(*said: dict[str, Any]) -> Answer:
    answer = Answer()
    for usage in said:
        take_usage(answer, read_usage(usage), read_cost(usage))
    return answer


def counts(usage: Usage | None) -> tuple[int, int]:
    assert usage is not None
    return usage.input_tokens, usage.output_tokens


def test_cumulative_counts_are_never_summed_up() -> None:
    cumulative = [{"prompt_tokens": 1000, "completion_tokens": count} for count in (1, 2, 500)]
    assert counts(taken(*cumulative).usage) == (1000, 500)


@pytest.mark.parametrize(
    "later",
    [
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": 0, "completion_tokens": 500},
        {"completion_tokens": 500},
        {"cost": 0.5},
        {},
    ],
)
def test_what_is_not_counted_again_wipes_nothing(later: dict[str, Any]) -> None:
    answer = taken(KNOWN, later)
    assert counts(answer.usage) == (1000, 500)
    assert (answer.counts_input, answer.counts_output) == (True, True)
    assert answer.cost == Decimal("0.5")


def test_an_input_that_was_counted_early_keeps_its_parts() -> None:
    early = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 900}}
    usage = taken(early, {"completion_tokens": 500}).usage
    assert counts(usage) == (1000, 500)
    assert usage is not None
    assert usage.cached_input_tokens == 900


def test_a_cost_belongs_to_its_counts() -> None:
    assert taken(KNOWN, {"prompt_tokens": 2000, "completion_tokens": 500}).cost is None


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ('{"cost": 0.00123}', "0.00123"),
        ('{"cost": 1e-9}', "1E-9"),
        ('{"cost": 0}', "0"),
        ('{"cost": "0.12345678901234567890"}', "0.12345678901234567890"),
        ('{"cost": {"total_cost": 0.5, "request_cost": 0.1}}', "0.5"),
        ('{"cost_in_usd_ticks": 37756000}', "0.0037756"),
        ('{"cost": 0.25, "cost_in_usd_ticks": 1}', "0.25"),
        (
            '{"cost": 0.0005, "is_byok": true, "cost_details": {"upstream_inference_cost": 0.01}}',
            "0.0105",
        ),
        (
            '{"cost": 0.01, "is_byok": false, "cost_details": {"upstream_inference_cost": 0.01}}',
            "0.01",
        ),
    ],
)
def test_a_stated_cost_is_read_exactly(usage: str, cost: str) -> None:
    assert read_cost(json.loads(usage)) == (Decimal(cost), "USD")


@pytest.mark.parametrize(
    "usage",
    [
        *(
            {"cost": cost}
            for cost in (None, True, -1, -0.5, float("inf"), float("nan"), "-1", "free", "1e9999")
        ),
        {"cost": {"total_cost": -1}},
        {"cost": {}},
        {"cost_in_usd_ticks": -5},
        {"cost": 0.0005, "is_byok": True, "cost_details": {"upstream_inference_cost": None}},
    ],
)
def test_what_is_no_cost_is_none(usage: dict[str, Any]) -> None:
    assert read_cost(usage) is None


@pytest.mark.parametrize(
    ("said", "currency"),
    [("EUR", "EUR"), ("chf", "CHF"), ("credits", "USD"), ("", "USD"), (5, "USD"), ("E\n", "USD")],
)
def test_only_a_code_names_another_currency(said: Any, currency: str) -> None:
    cost = read_cost({"cost": 0.5, "cost_currency": said})
    assert cost is not None
    assert cost.currency == currency
