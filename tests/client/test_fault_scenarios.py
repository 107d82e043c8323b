"""Every scenario of the fault provider, whole and streamed, through a client with its default chain.

All of them run at once, before the first test; each test then looks at one outcome.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lmclient import AsyncClient, Completion, FinishReason, LMClientError, ModelProfile, Settings, errors
from lmclient.testing import FaultProvider
from lmclient.testing.fault import (
    BAD_ARGUMENTS,
    HUGE_SIZE,
    INVALID_UTF8_TEXT,
    MANY,
    PIECES,
    SCENARIOS,
    TEXT,
    TOOL_CALLS,
    UNICODE_TEXT,
)

from .sockets import open_sockets, settled

KEY = "sk-planted-0123456789abcdef"
START = "The quick brown"
CALLS = tuple((call.id, call.name, call.arguments) for call in TOOL_CALLS)
SECONDS = 60
"""Until all outcomes must be there, on a busy machine; waiting between four attempts takes 3.5 s."""


@dataclass(frozen=True)
class Expected:
    """What the caller gets and the server sees. `error` None: an answer."""

    text: str = TEXT
    finish: FinishReason = FinishReason.STOP
    calls: tuple[tuple[str, str, str], ...] = ()
    estimated: bool = False
    error: type[LMClientError] | None = None
    says: str = ""
    status: int | None = None
    requests: int = 1
    aborted: int | None = 0
    """Requests that the client gave up, None where either may be first."""


def failing(error: type[LMClientError], says: str, status: int | None = None, **more: Any) -> Expected:
    return Expected(**{"text": "", "error": error, "says": says, "status": status, "aborted": None, **more})


ok = Expected()
WHOLE: dict[str, Expected] = {
    "ok": ok,
    "slow_first_byte": ok,
    "slow_stream": ok,
    "hang": failing(errors.TimeoutError, "timeouts.first_byte", aborted=1),
    "hang_mid_stream": failing(errors.TimeoutError, "timeouts.", aborted=1),
    "drip": replace(ok, text=START),
    "reset_before_headers": failing(errors.ConnectError, "127.0.0.1", requests=4),
    "reset_mid_stream": failing(errors.StreamInterruptedError, "broke the connection", requests=4),
    "truncated_stream": ok,
    "no_done": ok,
    "truncated_json": failing(errors.StreamInterruptedError, "broke the connection", requests=4),
    "http10_close": ok,
    "rate_limited_once": replace(ok, requests=2),
    "rate_limited_ms": replace(ok, requests=2),
    "rate_limited_date": replace(ok, requests=2),
    "rate_limited_forever": failing(errors.RateLimitError, "Rate limit reached", 429),
    "quota_exhausted": failing(errors.QuotaExceededError, "insufficient_quota", 429),
    "server_error_once": replace(ok, requests=2),
    "overloaded_twice": replace(ok, requests=3),
    "bad_gateway_html": failing(errors.ServerError, "502 Bad Gateway", 502, requests=4),
    "unauthorized": failing(errors.AuthenticationError, "Incorrect API key provided: ***", 401),
    "bad_request": failing(errors.ContextLengthError, "maximum context length is 8192", 400),
    "not_found_model": failing(errors.NotFoundError, "`mock` does not exist", 404),
    "redirect": ok,
    "cross_host_redirect": ok,
    "error_in_200": failing(errors.ServerError, "Provider returned error", 502, requests=4),
    "error_event": failing(errors.ServerError, "Provider returned error", 502, requests=4),
    "malformed_event": failing(errors.ProtocolError, "cannot be read"),
    "empty_choices": replace(ok, text="", finish=FinishReason.UNKNOWN),
    "null_content": replace(ok, text=""),
    "keepalive_comments": ok,
    "bom_utf8": ok,
    "split_utf8": replace(ok, text=UNICODE_TEXT),
    "invalid_utf8": replace(ok, text=INVALID_UTF8_TEXT),
    "gzip": ok,
    "wrong_content_type": ok,
    "huge_chunk": replace(ok, text="x" * HUGE_SIZE),
    "many_chunks": replace(ok, text="".join(f"{number} " for number in range(MANY))),
    "content_filter": replace(ok, text=START, finish=FinishReason.CONTENT_FILTER),
    "length": replace(ok, text=START, finish=FinishReason.LENGTH),
    "duplicate_finish": ok,
    "late_text_after_finish": ok,
    "usage_every_chunk": ok,
    "usage_with_choices": ok,
    "usage_none": replace(ok, estimated=True),
    "usage_null_fields": ok,
    "tool_call_stream": replace(ok, text="", finish=FinishReason.TOOL_CALLS, calls=CALLS),
    "tool_call_no_index": replace(ok, text="", finish=FinishReason.TOOL_CALLS, calls=CALLS),
    "tool_call_bad_json": replace(
        ok, text="", finish=FinishReason.TOOL_CALLS, calls=(("call_1", "get_weather", BAD_ARGUMENTS),)
    ),
}
STREAMED: dict[str, Expected] = {
    **WHOLE,
    "hang_mid_stream": failing(errors.TimeoutError, "timeouts.idle", text=START, aborted=1),
    "reset_mid_stream": failing(errors.StreamInterruptedError, "broke the connection", text=START),
    "truncated_stream": failing(errors.StreamInterruptedError, "without a finish reason", text=START),
    "truncated_json": failing(
        errors.StreamInterruptedError, "broke the connection", text="The quick brown fox jumps"
    ),
    "error_event": failing(errors.ServerError, "The server had an error", 500, text="The quick"),
    "malformed_event": failing(errors.ProtocolError, "cannot be read", text=START),
}
ENDPOINTS = (
    "ok",
    "slow_first_byte",
    "hang",
    "reset_before_headers",
    "rate_limited_once",
    "rate_limited_ms",
    "rate_limited_date",
    "rate_limited_forever",
    "quota_exhausted",
    "server_error_once",
    "overloaded_twice",
    "bad_gateway_html",
    "unauthorized",
    "redirect",
    "cross_host_redirect",
)
MODELS: dict[str, Expected] = {
    **{name: WHOLE[name] for name in ENDPOINTS},
    "hang_mid_stream": ok,
    "not_found_model": ok,
}
CASES = [(kind, name) for kind, table in (("whole", WHOLE), ("streamed", STREAMED)) for name in table]


@dataclass
class Outcome:
    """What the caller got; `texts` are those of the chunks."""

    completion: Completion = field(default_factory=Completion)
    error: BaseException | None = None
    texts: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    counters: dict[str, Any] = field(default_factory=dict)
    landed: dict[str, Any] = field(default_factory=dict)


LIMITS = {"hang": {"first_byte": 1.5}, "hang_mid_stream": {"idle": 1.5}}
"""For what never goes on; wide enough for a busy machine."""
Outcomes = dict[tuple[str, str], Outcome]


async def run(client: AsyncClient, provider: FaultProvider, kind: str, scenario: str) -> Outcome:
    limits = LIMITS.get(scenario, {})
    profile = ModelProfile(
        name=scenario,
        provider="openai-chat",
        model="mock",
        url=provider.url(scenario, key=kind),
        api_key=KEY,
        timeouts=limits,
    )
    outcome = Outcome()
    try:
        if kind == "models":
            outcome.models = await client.models(profile)
        elif kind == "whole":
            outcome.completion = await client.complete(profile, "Hello")
        else:
            async with client.stream(profile, "Hello") as stream:
                async for chunk in stream:
                    outcome.texts.append(chunk.text)
            outcome.completion = stream.completion
    except LMClientError as error:
        outcome.error = error
        outcome.completion = error.partial or outcome.completion
    return outcome


async def run_all(provider: FaultProvider, data: Path) -> Outcomes:
    cases = [*CASES, *(("models", name) for name in MODELS)]
    settings = Settings(data_dir=data, profiles_dir=data, retry={"max_wait": 2.5})
    async with AsyncClient(settings) as client, asyncio.timeout(SECONDS):
        outcomes = await asyncio.gather(*(run(client, provider, *case) for case in cases))
    return dict(zip(cases, outcomes, strict=True))


@dataclass
class Run:
    outcomes: Outcomes
    sockets_before: int
    sockets_after: int


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """All outcomes, and the numbers of open sockets before and after."""
    with pytest.MonkeyPatch.context() as patch, FaultProvider.running() as provider:
        patch.chdir(tmp_path_factory.mktemp("scenarios"))
        before = open_sockets() if sys.platform == "linux" else 0
        outcomes = asyncio.run(run_all(provider, Path.cwd()))
        after = settled(before) if sys.platform == "linux" else 0
        counters = provider.stats()
        for (kind, scenario), outcome in outcomes.items():
            outcome.counters = counters.get(f"{scenario}~{kind}", {})
        for kind in ("whole", "streamed", "models"):
            # The healthy scenario of this key got its own request, and those of the two redirects.
            for scenario in ("redirect", "cross_host_redirect"):
                outcomes[kind, scenario].landed = counters[f"ok~{kind}"]
        yield Run(outcomes, before, after)


def expectation(kind: str, scenario: str) -> Expected:
    return {"whole": WHOLE, "streamed": STREAMED, "models": MODELS}[kind][scenario]


def test_every_scenario_is_expected() -> None:
    assert set(WHOLE) == set(SCENARIOS)
    assert set(STREAMED) == set(SCENARIOS)


@pytest.mark.parametrize(("kind", "scenario"), CASES)
def test_the_caller_gets_the_text_and_the_finish_reason(ran: Run, kind: str, scenario: str) -> None:
    expected, outcome = expectation(kind, scenario), ran.outcomes[kind, scenario]
    if expected.error is not None:
        assert outcome.completion.text == expected.text
    else:
        assert outcome.error is None
        assert (outcome.completion.text, outcome.completion.finish_reason) == (expected.text, expected.finish)


@pytest.mark.parametrize(("kind", "scenario"), [*CASES, *(("models", name) for name in MODELS)])
def test_the_caller_gets_the_error(ran: Run, kind: str, scenario: str) -> None:
    expected, error = expectation(kind, scenario), ran.outcomes[kind, scenario].error
    if expected.error is None:
        assert error is None
        return
    assert type(error) is expected.error
    assert expected.says in str(error)
    assert f"Profile {scenario!r}" in str(error)
    assert getattr(error, "status", None) == expected.status


@pytest.mark.parametrize(("kind", "scenario"), [*CASES, *(("models", name) for name in MODELS)])
def test_the_server_sees_so_many_requests(ran: Run, kind: str, scenario: str) -> None:
    counters = ran.outcomes[kind, scenario].counters
    expected = expectation(kind, scenario).requests
    if scenario == "ok":  # where the two redirects of this key land as well
        expected = 3
    assert counters["requests"] == expected


@pytest.mark.parametrize(("kind", "scenario"), [*CASES, *(("models", name) for name in MODELS)])
def test_the_client_hangs_up_only_on_what_fails(ran: Run, kind: str, scenario: str) -> None:
    expected = expectation(kind, scenario).aborted
    if expected is not None:
        assert ran.outcomes[kind, scenario].counters["aborted"] == expected


@pytest.mark.parametrize("scenario", [name for name, case in STREAMED.items() if case.error is None])
def test_the_chunks_of_a_stream_are_its_text(ran: Run, scenario: str) -> None:
    outcome = ran.outcomes["streamed", scenario]
    assert "".join(outcome.texts) == outcome.completion.text


@pytest.mark.parametrize("scenario", [name for name, case in STREAMED.items() if case.error is not None])
def test_what_arrived_before_an_error_was_delivered(ran: Run, scenario: str) -> None:
    assert "".join(ran.outcomes["streamed", scenario].texts) == STREAMED[scenario].text


@pytest.mark.parametrize(("kind", "scenario"), [case for case in CASES if expectation(*case).error is None])
def test_the_completion_counts_its_requests(ran: Run, kind: str, scenario: str) -> None:
    outcome = ran.outcomes[kind, scenario]
    assert outcome.completion.requests == expectation(kind, scenario).requests


@pytest.mark.parametrize(("kind", "scenario"), [case for case in CASES if expectation(*case).error is None])
def test_usage_is_what_the_server_says_or_estimated(ran: Run, kind: str, scenario: str) -> None:
    usage = ran.outcomes[kind, scenario].completion.usage
    if expectation(kind, scenario).estimated:
        assert (usage.estimated, usage.input_tokens > 0, usage.output_tokens > 0) == (True, True, True)
    else:
        cached = 0 if scenario == "usage_null_fields" else 5
        assert (usage.estimated, usage.input_tokens, usage.output_tokens) == (False, 25, len(PIECES))
        assert usage.cached_input_tokens == cached


@pytest.mark.parametrize("kind", ["whole", "streamed"])
@pytest.mark.parametrize("scenario", ["tool_call_stream", "tool_call_no_index", "tool_call_bad_json"])
def test_tool_calls_come_whole(ran: Run, kind: str, scenario: str) -> None:
    calls = ran.outcomes[kind, scenario].completion.tool_calls
    assert tuple((call.id, call.name, call.raw_arguments) for call in calls) == WHOLE[scenario].calls
    assert all((call.arguments is None) == (scenario == "tool_call_bad_json") for call in calls)


@pytest.mark.parametrize("kind", ["whole", "streamed"])
def test_a_wait_beyond_the_limit_is_told_in_the_error(ran: Run, kind: str) -> None:
    error = ran.outcomes[kind, "rate_limited_forever"].error
    assert isinstance(error, errors.RateLimitError)
    assert error.retry_after == 3600


@pytest.mark.parametrize(
    ("scenario", "at_least"),
    [("rate_limited_once", 1.0), ("rate_limited_ms", 0.2), ("rate_limited_date", 0.99)],
)
@pytest.mark.parametrize("kind", ["whole", "streamed", "models"])
def test_the_wait_that_the_provider_asks_for_is_kept(
    ran: Run, kind: str, scenario: str, at_least: float
) -> None:
    first, second = ran.outcomes[kind, scenario].counters["times"]
    assert second - first >= at_least


@pytest.mark.parametrize("kind", ["whole", "streamed", "models"])
def test_only_a_redirect_to_another_host_drops_the_key(ran: Run, kind: str) -> None:
    landed = ran.outcomes[kind, "redirect"].landed
    assert sorted(landed["authorization"]) == [False, True, True]
    assert ran.outcomes[kind, "cross_host_redirect"].counters["authorization"] == [True]


def test_no_message_holds_the_key(ran: Run) -> None:
    assert not [case for case, outcome in ran.outcomes.items() if KEY in repr(outcome.error)]


@pytest.mark.parametrize("scenario", [name for name, case in MODELS.items() if case.error is None])
def test_the_models_are_listed(ran: Run, scenario: str) -> None:
    assert ran.outcomes["models", scenario].models == ["mock"]


@pytest.mark.skipif(sys.platform != "linux", reason="counts sockets in /proc")
def test_no_connection_is_left_open(ran: Run) -> None:
    assert ran.sockets_after == ran.sockets_before
