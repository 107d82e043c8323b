"""What a usage costs, to the last digit: the price sheet of a provider with a cache, tiers and batches."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import pytest

from lmclient import ModelProfile, Usage
from lmclient.profiles.model import Cost
from lmclient.spend.costs import cost_of
from lmclient.spend.prices import is_inconsistent, price

SHEET = Cost(
    input=Decimal("2.00"),
    cached_input=Decimal("0.20"),
    cache_write=Decimal("2.50"),
    cache_write_1h=Decimal("4.00"),
    output=Decimal("8.00"),
    tiers=(  # type: ignore[arg-type]  # pydantic makes a tier of the dict
        {"above_input_tokens": 200_000, "input": "4.00", "cached_input": "0.40", "output": "12.00"},
    ),
)


def usage(input: int, output: int = 0, **parts: Any) -> Usage:
    return Usage(input_tokens=input, output_tokens=output, **parts)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param(usage(12_003, 500, cache_write_tokens=12_000), "0.034006", id="writes once"),
        pytest.param(usage(17_000, 10, cached_input_tokens=17_000), "0.00348", id="all read from the cache"),
        pytest.param(usage(16_000, 10, cached_input_tokens=17_000), "0.00328", id="more read than sent"),
        pytest.param(
            usage(98_800, 5_100, cached_input_tokens=66_300, cache_write_tokens=32_400),
            "0.13526",
            id="read and written",
        ),
        pytest.param(
            usage(1_000, 0, cache_write_tokens=1_000, cache_write_1h_tokens=400), "0.0031", id="two lifetimes"
        ),
        pytest.param(usage(250_000), "1", id="above the tier"),
        pytest.param(usage(200_000), "0.4", id="at the tier's border"),
        pytest.param(usage(200_001, 100), "0.801204", id="output of the tier"),
        pytest.param(
            usage(250_000, 0, cache_write_tokens=250_000), "0.625", id="a price that the tier does not name"
        ),
        pytest.param(usage(0, 1_000, reasoning_tokens=900), "0.008", id="reasoning is output"),
        pytest.param(usage(0), "0", id="nothing"),
    ],
)
def test_every_token_is_priced_once(used: Usage, expected: str) -> None:
    assert price(used, SHEET) == Decimal(expected)


def test_batch_factor_holds_for_cached_tokens_too() -> None:
    used = usage(10_000, 100, cached_input_tokens=8_000)
    assert price(used, SHEET, factor=Decimal("0.5")) == Decimal("0.0032")


def test_reasoning_has_a_price_of_its_own_where_one_is_given() -> None:
    cost = Cost(input=Decimal(1), output=Decimal(2), reasoning=Decimal(3))
    assert price(usage(0, 1_000, reasoning_tokens=400), cost) == Decimal("0.0024")


def test_prices_that_are_not_given_are_those_of_the_whole() -> None:
    cost = Cost(input=Decimal(1), output=Decimal(2))
    used = usage(3_000, 1_000, cached_input_tokens=1_000, cache_write_tokens=1_000, reasoning_tokens=1_000)
    assert price(used, cost) == Decimal("0.005")


def test_free_model_costs_zero() -> None:
    assert price(usage(10, 10), Cost(input=Decimal(0), output=Decimal(0))) == 0


@pytest.mark.parametrize("cost", [Cost(), Cost(input=Decimal(1)), Cost(currency="EUR")])
def test_missing_price_is_unknown_and_not_free(cost: Cost) -> None:
    assert price(usage(10, 10), cost) is None


@pytest.mark.parametrize(
    "used",
    [
        usage(10, cached_input_tokens=11),
        usage(10, cached_input_tokens=6, cache_write_tokens=5),
        usage(10, cache_write_tokens=5, cache_write_1h_tokens=6),
        usage(10, 5, reasoning_tokens=6),
    ],
)
def test_parts_that_are_more_than_the_whole_are_inconsistent(used: Usage) -> None:
    assert is_inconsistent(used)


def test_parts_that_are_the_whole_are_consistent() -> None:
    assert not is_inconsistent(usage(10, 5, cached_input_tokens=4, cache_write_tokens=6, reasoning_tokens=5))


def test_stated_cost_comes_first() -> None:
    profile = ModelProfile(provider="openrouter", cost={"input": 1, "output": 1, "currency": "EUR"})
    assert cost_of(usage(10, 10), profile, stated=Decimal("0.5")) == (Decimal("0.5"), "provider", "USD")


def test_stated_cost_may_be_in_another_currency() -> None:
    profile = ModelProfile(provider="openai-chat", cost={"input": 1, "output": 1})
    priced = cost_of(usage(10, 10), profile, stated=Decimal("0.5"), currency="EUR")
    assert priced == (Decimal("0.5"), "provider", "EUR")


def test_profile_comes_before_the_list() -> None:
    profile = ModelProfile(provider="openai-chat", model="gpt-4o", cost={"input": 1, "output": 1})
    assert cost_of(usage(10, 10), profile) == (Decimal("0.00002"), "profile", "USD")


def test_profile_with_half_its_prices_is_not_completed_from_the_list() -> None:
    profile = ModelProfile(provider="openai-chat", model="gpt-4o", cost={"input": 1, "currency": "EUR"})
    assert cost_of(usage(10, 10), profile) == (None, None, "EUR")


def test_decimal_context_of_the_application_rounds_nothing() -> None:
    used = Usage(input_tokens=98765, cached_input_tokens=1234, output_tokens=43211)
    with decimal.localcontext(prec=3):
        cost = price(used, SHEET)
    assert cost == Decimal("0.5409968")
