"""What headers of providers say about their limits."""

from __future__ import annotations

import datetime
import time

import pytest

from lmclient import ProviderLimits
from lmclient.providers.rate_limit_headers import provider_limits


def test_answers_without_such_headers_say_nothing() -> None:
    assert provider_limits({"content-type": "application/json", "x-request-id": "1"}) is None


def test_openai_states_counts_and_durations() -> None:
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert provider_limits(headers) == ProviderLimits(
        remaining_requests=59, requests_reset=1.0, remaining_tokens=149984, tokens_reset=360.0
    )


def test_anthropic_states_times() -> None:
    reset = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=20)
    headers = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": reset.isoformat().replace("+00:00", "Z"),
    }
    said = provider_limits(headers)
    assert said is not None
    assert said.remaining_requests == 0
    assert said.requests_reset == pytest.approx(20, abs=5)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2"}, (0, 2.0, None, None)),
        ({"x-tokenlimit-remaining": "90", "x-tokenlimit-reset": "3"}, (None, None, 90, 3.0)),
        ({"ratelimit-remaining": "7", "ratelimit-reset": "20"}, (7, 20.0, None, None)),
        (
            {
                "x-ratelimit-remaining-requests-day": "900",
                "x-ratelimit-reset-requests-day": "33011.38",
                "x-ratelimit-remaining-tokens-minute": "0",
                "x-ratelimit-reset-tokens-minute": "11.38",
            },
            (900, 33011.38, 0, 11.38),
        ),
        (
            {
                "x-ratelimit-remaining-tokens-minute": "0",
                "x-ratelimit-reset-tokens-minute": "11.5",
                "x-ratelimit-remaining-tokens-day": "5000",
                "x-ratelimit-reset-tokens-day": "33011.38",
            },
            (None, None, 0, 11.5),
        ),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "5000",
                "anthropic-ratelimit-tokens-reset": "4",
                "anthropic-ratelimit-output-tokens-remaining": "0",
                "anthropic-ratelimit-output-tokens-reset": "9",
            },
            (None, None, 0, 9.0),
        ),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "5000",
                "anthropic-ratelimit-tokens-reset": "4",
                "anthropic-ratelimit-output-tokens-remaining": "10",
                "anthropic-ratelimit-output-tokens-reset": "9",
            },
            (None, None, 5000, 4.0),
        ),
    ],
    ids=["together", "together tokens", "ietf", "cerebras", "least", "output tokens", "some output tokens"],
)
def test_each_provider_has_its_own_names(
    headers: dict[str, str], said: tuple[int | None, float | None, int | None, float | None]
) -> None:
    requests, requests_reset, tokens, tokens_reset = said
    assert provider_limits(headers) == ProviderLimits(
        remaining_requests=requests,
        requests_reset=requests_reset,
        remaining_tokens=tokens,
        tokens_reset=tokens_reset,
    )


@pytest.mark.parametrize("factor", [1, 1000], ids=["seconds", "milliseconds"])
def test_a_reset_may_be_a_time_since_1970(factor: int) -> None:
    reset = str(int((time.time() + 20) * factor))
    said = provider_limits({"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})
    assert said is not None
    assert said.requests_reset == pytest.approx(20, abs=5)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("20ms", 0.02),
        ("1.5", 1.5),
        ("2m59.56s", 179.56),
        ("1h2m", 3720.0),
        ("1d", 86400.0),
        ("soon", None),
        ("-1", None),
        ("nan", None),
        ("", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-01-01T00:00:00", None),
        ("2020-01-01T00:00:00Z", 0.0),
    ],
)
def test_durations_are_read_in_all_their_forms(reset: str, seconds: float | None) -> None:
    said = provider_limits({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": reset})
    assert said is not None
    assert said.tokens_reset == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(("remaining", "count"), [("-3", 0), ("many", None), ("1.5", None), ("9" * 40, None)])
def test_counts_that_are_none_are_not_believed(remaining: str, count: int | None) -> None:
    said = provider_limits({"x-ratelimit-remaining-requests": remaining})
    assert said is not None
    assert said.remaining_requests == count


def test_retry_after_alone_is_heard() -> None:
    assert provider_limits({"retry-after": "3"}) == ProviderLimits(retry_after=3.0)
