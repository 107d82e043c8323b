from __future__ import annotations

import copy
import pickle
import traceback
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from lmclient.errors import ProfileError
from lmclient.profiles import Cost, ModelProfile, Timeouts

KEY = "sk-planted-0123456789"


def profile(**values: Any) -> ModelProfile:
    return ModelProfile(**{"provider": "openai-chat", "model": "gpt-5-mini", **values})


def secretive() -> ModelProfile:
    return profile(api_key=KEY, headers={"X-Api-Key": KEY, "X-Team": "blue"}, extra_query={"key": KEY})


def test_only_the_provider_is_required() -> None:
    assert ModelProfile(provider="ollama").name == "ollama"


def test_the_name_defaults_to_the_model() -> None:
    assert profile().name == "gpt-5-mini"


def test_what_was_not_set_is_none() -> None:
    made = profile()
    assert (made.max_tokens, made.temperature, made.top_p, made.max_context_length) == (None,) * 4


def test_empty_text_is_not_set() -> None:
    made = profile(api_key="", temperature="", token_encoding="", cost={"input": ""})
    assert (made.api_key, made.temperature, made.token_encoding) == (None, None, "o200k_base")
    assert made.cost.input is None


def test_temperature_zero_is_a_temperature() -> None:
    assert profile(temperature=0).temperature == 0.0


def test_the_defaults_of_the_timeouts_are_those_documented() -> None:
    assert profile().timeouts == Timeouts(connect=10, first_byte=120, idle=60, total=600)


def test_special_tokens_are_escaped_and_overflow_is_an_error_by_default() -> None:
    assert (profile().special_tokens, profile().on_overflow) == ("escape", "error")


@pytest.mark.parametrize("price", ["0.1", 0.1, Decimal("0.1")])
def test_a_price_is_exact_however_it_is_written(price: object) -> None:
    assert profile(cost={"input": price}).cost.input == Decimal("0.1")


def test_tiers_are_sorted_by_where_they_begin() -> None:
    cost = Cost(tiers=({"above_input_tokens": 500}, {"above_input_tokens": 200, "input": 4}))  # type: ignore[arg-type]  # given as TOML gives them
    assert [tier.above_input_tokens for tier in cost.tiers] == [200, 500]


def test_a_key_loses_the_line_end_it_was_pasted_with() -> None:
    key = profile(api_key=f"{KEY}\n").api_key
    assert key is not None
    assert key.get_secret_value() == KEY


def test_a_profile_is_frozen() -> None:
    with pytest.raises(ValidationError):
        profile().model = "other"


def test_equal_profiles_are_one_dictionary_key() -> None:
    assert len({secretive(): 1, secretive(): 2}) == 1


@pytest.mark.parametrize(
    ("values", "key", "expected"),
    [
        ({"provider": ""}, "provider", "a value"),
        ({"temperature": 2.1}, "temperature", "at most 2"),
        ({"temperature": -0.1}, "temperature", "at least 0"),
        ({"temperature": float("nan")}, "temperature", "finite"),
        ({"top_p": 1.1}, "top_p", "at most 1"),
        ({"max_tokens": -1}, "max_tokens", "at least 0"),
        ({"max_tokens": "many"}, "max_tokens", "a whole number"),
        ({"max_tokens": True}, "max_tokens", "a number"),
        ({"max_context_length": -1}, "max_context_length", "at least 0"),
        ({"cost": {"output": "-1"}}, "cost.output", "at least 0"),
        ({"cost": {"input": "NaN"}}, "cost.input", "finite"),
        ({"cost": {"tiers": [{"input": 1}]}}, "cost.tiers.0.above_input_tokens", "a value"),
        ({"cost": 5}, "cost", "a table"),
        ({"limits": {"concurrency": 0}}, "limits.concurrency", "more than 0"),
        ({"timeouts": {"idle": 0}}, "timeouts.idle", "more than 0"),
        ({"on_overflow": "cut"}, "on_overflow", "'drop-oldest'"),
        ({"roles": "merged"}, "roles", "'alternating'"),
        ({"special_tokens": "keep"}, "special_tokens", "'reject'"),
        ({"url": "localhost:8080"}, "url", "http://"),
        ({"url": "http://[::1"}, "url", "a valid URL"),
        ({"url": f"https://me:{KEY}@host"}, "url", "without user and password"),
        ({"headers": {"x": "a\r\nb"}}, "headers.x", "printable ASCII"),
        ({"api_key": "ключ"}, "api_key", "printable ASCII"),
        ({"limits": {"concurency": 3}}, "limits.concurency", "one of concurrency"),
    ],
)
def test_a_wrong_value_names_its_key_and_what_was_expected(
    values: dict[str, Any], key: str, expected: str
) -> None:
    with pytest.raises(ProfileError, match=r"expected|is missing") as caught:
        profile(**values)
    assert caught.value.key == key
    assert expected in str(caught.value.expected)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values", [{"apikey": KEY}, {"max_tokens": KEY}, {"api_key": f"{KEY}é"}, {"cost": KEY}, {"url": KEY}]
)
def test_an_error_does_not_show_a_misplaced_key(values: dict[str, Any]) -> None:
    with pytest.raises(ProfileError) as caught:
        profile(**values)
    shown = repr(caught.value) + "".join(traceback.format_exception(caught.value))
    assert KEY not in shown


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        lambda made: repr(vars(made)),
        lambda made: repr(made.model_dump()),
        lambda made: made.model_dump_json(),
        lambda made: repr(dict(made)),
        lambda made: repr(copy.deepcopy(made)),
        lambda made: pickle.dumps(made).decode("latin-1"),
    ],
)
def test_a_planted_key_is_not_shown(show: Any) -> None:
    shown = show(secretive())
    assert KEY not in shown
    assert "blue" in shown


def test_a_copy_keeps_the_key() -> None:
    assert copy.deepcopy(secretive()).api_key == secretive().api_key


def test_a_dump_makes_an_equal_profile() -> None:
    assert ModelProfile(**secretive().model_dump()) == secretive()


def test_unpickling_leaves_the_secrets_out() -> None:
    again = pickle.loads(pickle.dumps(secretive()))
    assert (again.api_key, again.headers, again.extra_query) == (None, {"X-Team": "blue"}, {})


@pytest.mark.parametrize("port", ["99999", "abc", "-1"])
def test_a_url_has_a_port_that_exists(port: str) -> None:
    with pytest.raises(ProfileError, match="url: expected a valid URL"):
        profile(url=f"http://127.0.0.1:{port}/v1")


@pytest.mark.parametrize("tag", ["<think>", "a b", "/think"])
def test_reasoning_tags_are_a_name_without_brackets(tag: str) -> None:
    with pytest.raises(ProfileError, match="reasoning_tags: expected the name of a tag"):
        profile(reasoning_tags=tag)
