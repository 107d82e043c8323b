"""List prices: whose they are, when they hold, and where there are none."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from lmclient import ModelProfile, Usage
from lmclient.spend.price_list import list_price

MILLION = Usage(input_tokens=100_000, output_tokens=100_000)


def listed(
    provider: str, model: str, url: str = "", *, used: Usage = MILLION, answered: str = ""
) -> Decimal | None:
    return list_price(used, ModelProfile(provider=provider, model=model, url=url), answered)


@pytest.mark.parametrize(
    ("provider", "model", "url"),
    [
        ("openai-chat", "gpt-4o", ""),
        ("openai-responses", "gpt-4o-2024-08-06", "https://api.openai.com/v1"),
        ("openai-chat", "gpt-4o", "http://127.0.0.1:8080/v1"),
        ("azure-openai", "gpt-4o", "https://my.openai.azure.com"),
        ("openrouter", "openai/gpt-4o", "https://openrouter.ai/api/v1"),
    ],
)
def test_model_has_the_price_of_its_provider(provider: str, model: str, url: str) -> None:
    assert listed(provider, model, url) == Decimal("1.25")


@pytest.mark.parametrize(
    ("provider", "model", "url"),
    [
        ("llama-cpp", "gpt-oss-120b", ""),
        ("ollama", "llama3.3", ""),
        ("openai-chat", "mock", "http://127.0.0.1:8080/v1"),
        ("openai-chat", "gpt-oss-120b", "http://localhost:8080/v1"),
        ("openai-chat", "gpt-oss-120b", "https://models.example.com/v1"),
        ("openai-chat", "no-such-model", "https://api.openai.com/v1"),
        ("openai-chat", "", ""),
        ("my-own-provider", "gpt-4o", ""),
    ],
)
def test_unknown_price_is_none(provider: str, model: str, url: str) -> None:
    assert listed(provider, model, url) is None


def test_model_that_answered_counts_before_the_one_that_was_asked() -> None:
    assert listed("openai-chat", "my-deployment", answered="gpt-4o") == Decimal("1.25")


def test_model_that_was_asked_counts_if_the_other_is_unknown() -> None:
    assert listed("openai-chat", "gpt-4o", answered="deployment-7") == Decimal("1.25")


def test_tiers_of_the_list_hold() -> None:
    small, large = Usage(input_tokens=200_000), Usage(input_tokens=200_001)
    prices = [listed("anthropic", "claude-sonnet-4-5", used=used) for used in (small, large)]
    assert prices == [Decimal("0.6"), Decimal("1.200006")]


@pytest.mark.parametrize(
    ("model", "terms", "factor"),
    [
        ("gpt-5", {"service_tier": "default"}, "1"),
        ("gpt-5", {"service_tier": "no-such-tier"}, "1"),
        ("gpt-5", {"service_tier": "flex"}, "0.5"),
        ("gpt-5", {"service_tier": "priority"}, "2"),
    ],
)
def test_service_tier_has_its_own_price(model: str, terms: dict[str, str], factor: str) -> None:
    profile = ModelProfile(provider="openai-chat", model=model)
    when = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
    used = Usage(input_tokens=1_000_000, cached_input_tokens=500_000, output_tokens=1_000_000)
    usual = list_price(used, profile, "", when)
    assert usual == Decimal("10.6875")
    assert list_price(used, profile, "", when, terms) == usual * Decimal(factor)


def test_searches_have_a_price() -> None:
    used = Usage(input_tokens=1000, output_tokens=10, details={"server_tool_use": {"web_search_requests": 3}})
    assert listed("anthropic", "claude-opus-5", used=used) == Decimal("0.03525")


@pytest.mark.parametrize(
    ("provider", "model", "details", "cost"),
    [
        (
            "gemini",
            "gemini-2.5-flash",
            {"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 1000}]},
            "0.0035",
        ),
        (
            "gemini",
            "gemini-2.5-flash-image",
            {"candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 900}, {"modality": "TEXT"}]},
            "0.02755",
        ),
        (
            "openai-chat",
            "gpt-audio",
            {"completion_tokens_details": {"audio_tokens": 900, "reasoning_tokens": 0}},
            "0.0611",
        ),
    ],
)
def test_tokens_that_are_no_text_have_their_own_price(
    provider: str, model: str, details: dict[str, Any], cost: str
) -> None:
    plain = Usage(input_tokens=1000, output_tokens=1000)
    used = msgspec.structs.replace(plain, details=details)
    assert listed(provider, model, used=used) == Decimal(cost) != listed(provider, model, used=plain)


@pytest.mark.parametrize(
    "details",
    [
        {"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 9000}, {"modality": 5}, 7, {}]},
        {"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": "x"}]},
        {"candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": -1}]},
        {"prompt_tokens_details": {"audio_tokens": None, "image_tokens": True}},
        {"completion_tokens_details": {"audio_tokens": 9000}},
        {"server_tool_use": {"web_search_requests": -3}},
        {"server_tool_use": [1]},
    ],
)
def test_strange_details_change_no_price(details: dict[str, Any]) -> None:
    plain = Usage(input_tokens=1000, cached_input_tokens=100, output_tokens=1000)
    used = msgspec.structs.replace(plain, details=details)
    assert listed("gemini", "gemini-2.5-flash", used=used) == listed("gemini", "gemini-2.5-flash", used=plain)


def test_prices_of_a_time_of_day_hold() -> None:
    profile = ModelProfile(provider="openai-chat", model="deepseek-chat", url="https://api.deepseek.com")
    night, day = (datetime.datetime(2025, 3, 1, hour, tzinfo=datetime.UTC) for hour in (20, 10))
    prices = [list_price(MILLION, profile, "", when) for when in (night, day)]
    assert prices[0] is not None
    assert prices[1] is not None
    assert prices[0] < prices[1]


def test_cached_count_larger_than_the_input_is_clamped() -> None:
    used = Usage(input_tokens=1_000_000, cached_input_tokens=2_000_000)
    assert listed("openai-chat", "gpt-4o", used=used) == Decimal("1.25")


def test_output_without_a_listed_price_is_not_free() -> None:
    assert listed("openai-chat", "text-embedding-3-small") is None


def test_list_is_loaded_only_when_a_price_is_needed() -> None:
    code = (
        "import sys; from lmclient import ModelProfile, Usage; from lmclient.spend.costs import cost_of\n"
        "cost_of(Usage(), ModelProfile(provider='openai-chat', model='x', cost={'input': 1, 'output': 1}))\n"
        "cost_of(Usage(), ModelProfile(provider='openai-chat', model='x', url='http://localhost:1'))\n"
        "sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
