"""What is tried again, how often, and after how long."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import email.utils
import gc
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    AsyncCompletionStream,
    CallNext,
    Completion,
    CompletionRequest,
    Conversation,
    ModelProfile,
    RetryInterceptor,
    Settings,
    errors,
)
from lmclient.testing.fault import TEXT

from .conftest import Fault
from .servers import COMPLETION, answering, response, serving

FaultOf = Callable[[str], Fault]
ERROR = b'{"error":{"message":"Slow down.","type":"requests","code":"rate_limit_exceeded"}}'


def profile_at(port: int, **values: Any) -> ModelProfile:
    return ModelProfile(provider="openai-chat", model="mock", url=f"http://127.0.0.1:{port}", **values)


def failing(status: str, *headers: str, body: bytes = ERROR) -> bytes:
    return response(body, status, *headers)


def client_with(tmp_path: Path, **retry: Any) -> AsyncClient:
    return AsyncClient(Settings(data_dir=tmp_path, profiles_dir=tmp_path, retry=retry))


def in_seconds(seconds: float) -> str:
    return email.utils.format_datetime(
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds), usegmt=True
    )


async def gap(tmp_path: Path, *headers: str, status: str = "429 Too Many Requests", **retry: Any) -> float:
    """Seconds between the first request, which is refused with these headers, and the second one."""
    times: list[float] = []

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        times.append(time.monotonic())
        writer.write(failing(status, *headers) if len(times) == 1 else response())

    async with serving(handle) as port, client_with(tmp_path, **retry) as client:
        await client.complete(profile_at(port), "Hello")
    return times[1] - times[0]


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("retry-after: 1", 1.0, 1.5),
        ("retry-after: 0.5", 0.5, 1.0),
        ("retry-after: 0", 0.0, 0.4),
        ("retry-after-ms: 250", 0.25, 0.7),
        ("retry-after-ms: 100\r\nretry-after: 3", 0.1, 0.6),
        ("retry-after: Fri, 01 Jan 2021 00:00:00 GMT", 0.0, 0.4),
        ("retry-after: -1", 0.04, 0.3),
        ("retry-after: nan", 0.04, 0.3),
        ("retry-after: inf", 0.04, 0.3),
        ("retry-after: abc", 0.04, 0.3),
        ("retry-after: ", 0.04, 0.3),
        ("retry-after-ms: abc", 0.04, 0.3),
        ("retry-after: 1e400", 0.04, 0.3),
        ("retry-after: Fri, 99 Foo 2021 00:00:00 GMT", 0.04, 0.3),
        ("retry-after-ms: abc\r\nretry-after: 0.5", 0.5, 1.0),
    ],
)
async def test_the_stated_wait_is_kept_and_a_malformed_one_is_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, header: str, least: float, most: float
) -> None:
    """E02"""
    monkeypatch.setattr("lmclient.interceptors.retry.FIRST_WAIT", 0.1)
    assert least <= await gap(tmp_path, header, status=status) < most


async def test_a_date_is_a_stated_wait(tmp_path: Path) -> None:
    """E02: dates are whole seconds."""
    assert 1.0 <= await gap(tmp_path, f"retry-after: {in_seconds(2)}") < 2.6


@pytest.mark.parametrize("header", ["retry-after: 3600", "retry-after-ms: 3600000", "retry-after: {date}"])
async def test_a_wait_beyond_the_limit_ends_the_call_at_once(tmp_path: Path, header: str) -> None:
    """E02"""
    seen: list[bytes] = []
    async with (
        serving(answering(failing("429 No", header.format(date=in_seconds(3600))), seen=seen)) as port,
        client_with(tmp_path) as client,
    ):
        with pytest.raises(errors.RateLimitError) as caught:
            await client.complete(profile_at(port), "Hello")
    assert len(seen) == 1
    assert caught.value.retry_after == pytest.approx(3600, abs=3)


async def test_a_wait_beyond_the_limit_ends_further_calls_at_once(tmp_path: Path) -> None:
    seen: list[bytes] = []
    async with (
        serving(answering(failing("429 No", "retry-after: 20"), response(), seen=seen)) as port,
        client_with(tmp_path, max_wait=5) as client,
    ):
        with pytest.raises(errors.RateLimitError):
            await client.complete(profile_at(port), "Hello")
        with pytest.raises(errors.RateLimitTimeoutError, match=r"for the next \d+\.\d s"):
            await asyncio.wait_for(client.complete(profile_at(port), "Hello"), 5)
    assert len(seen) == 1


async def test_a_wait_beyond_the_calls_own_time_ends_it_at_once(tmp_path: Path) -> None:
    seen: list[bytes] = []
    async with (
        serving(answering(failing("429 Too Many Requests", "retry-after: 5"), seen=seen)) as port,
        client_with(tmp_path) as client,
    ):
        began = time.monotonic()
        with pytest.raises(errors.RateLimitError):
            await client.complete(profile_at(port), "Hello", timeout=1)
    assert (len(seen), time.monotonic() - began < 0.9) == (1, True)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "500 Internal Server Error", "503 Unavailable"])
async def test_a_server_that_advises_against_it_is_not_asked_again(tmp_path: Path, status: str) -> None:
    """E02"""
    seen: list[bytes] = []
    async with (
        serving(answering(failing(status, "x-should-retry: false"), seen=seen)) as port,
        client_with(tmp_path) as client,
    ):
        with pytest.raises(errors.ProviderError):
            await client.complete(profile_at(port), "Hello")
    assert len(seen) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 529])
async def test_a_passing_failure_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr("lmclient.interceptors.retry.FIRST_WAIT", 0.01)
    async with (
        serving(answering(failing(f"{status} No"), response())) as port,
        client_with(tmp_path) as client,
    ):
        assert (await client.complete(profile_at(port), "Hello")).requests == 2


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 451])
async def test_a_refusal_is_not_tried_again(tmp_path: Path, status: int) -> None:
    seen: list[bytes] = []
    body = b'{"error":{"message":"No."}}'
    async with (
        serving(answering(failing(f"{status} No", body=body), seen=seen)) as port,
        client_with(tmp_path) as client,
    ):
        with pytest.raises(errors.ProviderError) as caught:
            await client.complete(profile_at(port), "Hello")
    assert (len(seen), caught.value.status) == (1, status)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b'{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}'),
        (429, b'{"error":{"message":"x","type":"insufficient_quota","param":null,"code":null}}'),
        (429, b'{"error":{"message":"x","code":"billing_hard_limit_reached"}}'),
        (402, b'{"error":{"message":"Insufficient Balance","type":"unknown_error"}}'),
        (402, b'{"error":{"message":"This request requires more credits.","code":402}}'),
        (
            400,
            b'{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to ..."}}',
        ),
        (403, b'{"error":{"message":"x","code":"insufficient_quota"}}'),
        (429, b'{"code":"insufficient_quota","message":"x"}'),
    ],
)
async def test_a_used_up_account_is_no_rate_limit(tmp_path: Path, status: int, body: bytes) -> None:
    """E04"""
    seen: list[bytes] = []
    async with (
        serving(answering(failing(f"{status} No", "retry-after: 0", body=body), seen=seen)) as port,
        client_with(tmp_path) as client,
    ):
        with pytest.raises(errors.QuotaExceededError):
            await client.complete(profile_at(port), "Hello")
    assert len(seen) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_quota_error_inside_a_successful_answer_is_not_tried_again(
    tmp_path: Path, stream: bool
) -> None:
    """E04"""
    body = (
        b'data: {"error":{"message":"x","code":"insufficient_quota"}}\n\n'
        if stream
        else (b'{"error":{"message":"x","code":"insufficient_quota"}}')
    )
    seen: list[bytes] = []
    async with serving(answering(response(body), seen=seen)) as port, client_with(tmp_path) as client:
        with pytest.raises(errors.QuotaExceededError):
            await (
                client.stream(profile_at(port), "Hello").wait()
                if stream
                else client.complete(profile_at(port), "Hello")
            )
    assert len(seen) == 1


async def test_every_attempt_is_reported_with_its_error_wait_and_duration(
    fault: FaultOf, settings: Settings
) -> None:
    """E14"""
    requests = []

    async def watch(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        requests.append(request)
        return await call_next(request)

    async with AsyncClient(settings, interceptors=[watch, RetryInterceptor()]) as client:
        answer = await client.complete(fault("overloaded_twice").profile(), "Hello")
    first, second, third = requests[0].attempts
    assert [getattr(attempt.error, "status", None) for attempt in (first, second, third)] == [529, 503, None]
    assert first.waited == 0.0
    assert 0.2 < second.waited < third.waited
    assert all(attempt.duration > 0 for attempt in (first, second, third))
    assert (third.completion, answer.requests) == (answer, 3)


async def test_the_number_of_attempts_is_a_setting(tmp_path: Path, fault: FaultOf) -> None:
    broken = fault("bad_gateway_html")
    async with client_with(tmp_path, attempts=2) as client:
        with pytest.raises(errors.ServerError):
            await client.complete(broken.profile(), "Hello")
    assert broken.count("requests") == 2


async def test_one_attempt_is_no_retry(tmp_path: Path, fault: FaultOf) -> None:
    broken = fault("server_error_once")
    async with client_with(tmp_path, attempts=1) as client:
        with pytest.raises(errors.ServerError):
            await client.complete(broken.profile(), "Hello")
    assert broken.count("requests") == 1


async def test_without_interceptors_there_is_one_bare_attempt(settings: Settings, fault: FaultOf) -> None:
    broken = fault("server_error_once")
    async with AsyncClient(settings, interceptors=[]) as client:
        with pytest.raises(errors.ServerError):
            await client.complete(broken.profile(), "Hello")
    assert broken.count("requests") == 1


async def test_a_limit_of_time_is_not_tried_again(client: AsyncClient, fault: FaultOf) -> None:
    """The server may still work on it."""
    silent = fault("hang")
    with pytest.raises(errors.TimeoutError):
        await client.complete(silent.profile(timeouts={"first_byte": 0.1}), "Hello")
    assert silent.count("requests") == 1


async def test_a_stream_that_breaks_before_its_first_chunk_is_tried_again(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmclient.interceptors.retry.FIRST_WAIT", 0.01)
    role = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
    seen: list[bytes] = []
    async with serving(answering(response(role), response(COMPLETION), seen=seen)) as port:
        answer = await client.stream(profile_at(port), "Hello").wait()
    assert (answer.text, len(seen)) == ("hi", 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_at_the_start_of_a_successful_answer_is_tried_again(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """B06 (a)"""
    monkeypatch.setattr("lmclient.interceptors.retry.FIRST_WAIT", 0.01)
    error = b'{"error":{"message":"quota","code":429}}'
    first = b"data: " + error + b"\n\n" if stream else error
    async with serving(answering(response(first), response())) as port:
        profile = profile_at(port)
        answer = await (
            client.stream(profile, "Hello").wait() if stream else client.complete(profile, "Hello")
        )
    assert (answer.text, answer.requests) == ("hi", 2)


async def test_cancelling_ends_the_wait_between_attempts(client: AsyncClient, fault: FaultOf) -> None:
    limited = fault("rate_limited_once")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await client.complete(limited.profile(), "Hello")
    assert limited.count("requests") == 1


async def test_an_interceptors_own_error_is_not_tried_again(settings: Settings, fault: FaultOf) -> None:
    ok = fault("ok")
    calls = []

    async def broken(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        calls.append(1)
        raise ValueError("mine")

    async with AsyncClient(settings, interceptors=[RetryInterceptor(), broken]) as client:
        with pytest.raises(ValueError, match="mine"):
            await client.complete(ok.profile(), "Hello")
    assert len(calls) == 1


async def test_the_answer_after_a_retry_is_whole(client: AsyncClient, fault: FaultOf) -> None:
    assert (await client.stream(fault("rate_limited_ms").profile(), "Hello").wait()).text == TEXT


@pytest.mark.parametrize(("sent", "requests"), [(COMPLETION[:30], 2), (b"{nonsense}" + COMPLETION, 1)])
async def test_an_answer_of_unknown_length_that_stops_in_the_middle_is_tried_again(
    tmp_path: Path, sent: bytes, requests: int
) -> None:
    """Where nothing says how long the body is, JSON that is cut is a lost connection, other JSON is wrong."""
    answers = [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + sent, response()]
    asked = 0

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.write(answers.pop(0))

    async with serving(answer) as port, client_with(tmp_path) as client:
        try:
            assert (await client.complete(profile_at(port), "Hello")).text == "hi"
        except errors.ProtocolError:
            assert requests == 1
    assert asked == requests


@pytest.mark.parametrize("failures", [1, 2])
async def test_what_a_failed_try_held_is_freed_without_the_garbage_collector(failures: int) -> None:
    """Errors that stay in the frames they passed would keep prompts and answers until it runs."""

    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    async def fail(request: CompletionRequest) -> AsyncCompletionStream:
        mine = Held()
        held.append(weakref.ref(mine))
        if len(held) <= failures:
            raise errors.RateLimitError("Slow down.", status=429, retry_after=0)
        return AsyncCompletionStream.of(Completion())

    retry, profile = RetryInterceptor(attempts=2), ModelProfile(provider="openai-chat", model="mock")
    request = CompletionRequest(profile=profile, conversation=Conversation.create("hi"))
    gc.disable()
    try:
        with contextlib.suppress(errors.RateLimitError):
            await (await retry(request, fail)).wait()
        assert [each() for each in held] == [None, None]
    finally:
        gc.enable()
