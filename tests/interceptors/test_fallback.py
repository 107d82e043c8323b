"""FallbackInterceptor, alone and in the default chain before a provider that fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lmclient import (
    AsyncClient,
    AsyncCompletionStream,
    AuthenticationError,
    BadRequestError,
    BudgetExceededError,
    CallNext,
    CircuitOpenError,
    Completion,
    CompletionRequest,
    ConnectError,
    ContentFilterError,
    ContextLengthError,
    ContextOverflowError,
    FallbackInterceptor,
    LMClientError,
    ModelProfile,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    RateLimitTimeoutError,
    ServerError,
    Settings,
    StreamInterruptedError,
    TimeoutError,
    UnsupportedOptionError,
)
from lmclient.interceptors.base import chain
from lmclient.testing import FaultProvider

from .calls import answer, profile, request

CURABLE = [
    ConnectError("refused"),
    TimeoutError("silent"),
    StreamInterruptedError("cut before the first chunk"),
    ServerError("down", status=503),
    RateLimitError("slow", status=429),
    QuotaExceededError("no credit", status=429),
    AuthenticationError("bad key", status=401),
    PermissionDeniedError("not this model", status=403),
    NotFoundError("no such model", status=404),
    CircuitOpenError("rests"),
    RateLimitTimeoutError("no room"),
    BudgetExceededError("spent"),
]
FINAL = [
    BadRequestError("wrong", status=400),
    ContentFilterError("not this", status=400),
    UnsupportedOptionError("no seed"),
    LMClientError("closed"),
]


async def fallback(
    errors: dict[str, BaseException], *profiles: ModelProfile, **values: object
) -> tuple[Completion, CompletionRequest]:
    """The answer of the first profile without an error, and the request."""
    asked = request(profiles[0], fallbacks=tuple(profiles[1:]), **values)

    async def call_next(tried: CompletionRequest) -> AsyncCompletionStream:
        error = errors.get(tried.profile.name)
        attempt = answer(tried, error=error, text="hello")
        if error is not None:
            raise error
        assert attempt.completion is not None
        return AsyncCompletionStream.of(attempt.completion)

    stream = await FallbackInterceptor()(asked, call_next)
    return await stream.wait(), asked


def tried(asked: CompletionRequest) -> list[str]:
    return [attempt.profile.name for attempt in asked.attempts]


@pytest.mark.parametrize("error", CURABLE, ids=lambda error: type(error).__name__)
async def test_the_next_profile_answers_what_another_server_can_cure(error: LMClientError) -> None:
    completion, asked = await fallback({"a": error}, profile("a"), profile("b"))
    assert completion.profile == "b"
    assert completion.metadata["fallback_from"] == ["a"]
    assert tried(asked) == ["a", "b"]


async def test_an_answer_that_was_read_inside_says_who_failed_before() -> None:
    async def reads(asked: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        stream = await call_next(asked)
        await stream.wait()
        return stream

    async def call_next(asked: CompletionRequest) -> AsyncCompletionStream:
        if asked.profile.name == "a":
            raise ServerError("down", status=503)
        return AsyncCompletionStream.of(Completion(text="hello"))

    stream = await chain([FallbackInterceptor(), reads], call_next)(
        request(profile("a"), fallbacks=(profile("b"),))
    )
    assert (await stream.wait()).metadata["fallback_from"] == ["a"]


@pytest.mark.parametrize("error", FINAL, ids=lambda error: type(error).__name__)
async def test_what_is_wrong_everywhere_is_asked_once(error: LMClientError) -> None:
    with pytest.raises(type(error)):
        await fallback({"a": error}, profile("a"), profile("b"))


async def test_an_answer_at_once_is_left_as_it_is() -> None:
    completion, _ = await fallback({}, profile("a"), profile("b"))
    assert completion.profile == "a"
    assert "fallback_from" not in completion.metadata


@pytest.mark.parametrize(
    "error", [ContextLengthError("too long", status=400), ContextOverflowError("too long", limit=8000)]
)
async def test_a_prompt_that_is_too_long_goes_to_a_longer_context_only(error: LMClientError) -> None:
    small, same, unknown, large = (
        profile("small", max_context_length=8000),
        profile("same", max_context_length=8000),
        profile("unknown"),
        profile("large", max_context_length=32000),
    )
    completion, asked = await fallback({"small": error}, small, same, unknown, large)
    assert completion.profile == "large"
    assert tried(asked) == ["small", "large"]


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "prompt is too long: 9000 tokens > 8192 maximum",
        "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
        "the request exceeds the available context size (8192 tokens), try increasing it",
    ],
)
async def test_the_limit_that_the_provider_states_is_the_one_to_exceed(message: str) -> None:
    smaller, larger = profile("smaller", max_context_length=8192), profile("larger", max_context_length=8193)
    completion, asked = await fallback({"a": ContextLengthError(message)}, profile("a"), smaller, larger)
    assert tried(asked) == ["a", "larger"]
    assert completion.profile == "larger"


async def test_without_a_longer_context_the_prompt_stays_too_long() -> None:
    with pytest.raises(ContextLengthError):
        await fallback(
            {"a": ContextLengthError("too long")}, profile("a", max_context_length=9), profile("b")
        )


async def test_the_last_error_tells_of_the_earlier_ones() -> None:
    errors = {
        "a": ServerError("down", status=503),
        "b": NotFoundError("no model"),
        "c": TimeoutError("silent"),
    }
    with pytest.raises(TimeoutError) as caught:
        await fallback(errors, *map(profile, "abc"))
    assert caught.value.__notes__ == [
        "Before that, profile 'a' failed with ServerError: down",
        "Before that, profile 'b' failed with NotFoundError: no model",
    ]


async def test_nothing_is_tried_after_the_deadline() -> None:
    with pytest.raises(ServerError):
        await fallback({"a": ServerError("down")}, profile("a"), profile("b"), deadline=time.monotonic() - 1)


async def test_a_refused_key_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "lmclient.fallback"):
        await fallback({"a": AuthenticationError("bad key", status=401)}, profile("a"), profile("b"))
    assert [record.getMessage() for record in caplog.records] == [
        "profile 'a' failed with AuthenticationError: bad key; asking profile 'b' instead."
    ]


class Provider:
    """Two profile files behind the category `m`, the first one at a scenario of the fault provider."""

    def __init__(self, provider: FaultProvider, directory: Path, scenario: str, key: str) -> None:
        self._provider = provider
        self._names = (f"{scenario}~{key}", f"ok~{key}")
        folder = directory / "profiles"
        folder.mkdir()
        for name, url in (
            ("first", provider.url(scenario, key=key)),
            ("second", provider.url("ok", key=key)),
        ):
            text = f'provider = "openai-chat"\nmodel = "mock"\nurl = "{url}"\napi_key = "sk-planted-0123"\n'
            (folder / f"{name}.toml").write_text(text)
        self.settings = Settings(
            data_dir=directory / "data",
            profiles_dir=folder,
            categories={"m": ["first", "second"]},
            retry={"attempts": 2, "max_wait": 0},
        )

    def requests(self) -> list[int]:
        stats = self._provider.stats()
        return [stats.get(name, {}).get("requests", 0) for name in self._names]


@pytest.fixture
def failing(
    fault_provider: FaultProvider, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[[str], Provider]:
    return lambda scenario: Provider(fault_provider, tmp_path, scenario, f"fb{abs(hash(request.node.name))}")


@pytest.mark.parametrize(
    ("scenario", "requests"),
    [
        ("quota_exhausted", [1, 1]),
        ("bad_gateway_html", [2, 1]),
        ("unauthorized", [1, 1]),
        ("not_found_model", [1, 1]),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_server_sees_each_profile_asked_as_often_as_makes_sense(
    failing: Callable[[str], Provider], scenario: str, requests: list[int], stream: bool
) -> None:
    provider = failing(scenario)
    async with AsyncClient(provider.settings) as client:
        if stream:
            async with client.stream("m", "hi") as opened:
                completion = await opened.wait()
        else:
            completion = await client.complete("m", "hi")
    assert completion.profile == "second"
    assert provider.requests() == requests


async def test_an_answer_that_broke_off_is_not_begun_anew_elsewhere(
    failing: Callable[[str], Provider],
) -> None:
    provider = failing("reset_mid_stream")
    async with AsyncClient(provider.settings) as client:
        with pytest.raises(StreamInterruptedError):
            async with client.stream("m", "hi") as opened:
                await opened.wait()
    assert provider.requests() == [1, 0]


async def test_an_open_circuit_spares_the_failing_server(failing: Callable[[str], Provider]) -> None:
    provider = failing("bad_gateway_html")
    async with AsyncClient(provider.settings) as client:
        for _ in range(8):
            assert (await client.complete("m", "hi")).profile == "second"
    assert provider.requests() == [5 * 2, 8]  # five failures of two attempts each, then the circuit is open
