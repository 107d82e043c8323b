"""CircuitBreakerInterceptor with a clock of the test's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from lmclient import (
    AsyncCompletionStream,
    BadRequestError,
    Chunk,
    CircuitBreakerInterceptor,
    CircuitOpenError,
    Completion,
    CompletionRequest,
    ConnectError,
    LMClientError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
    TimeoutError,
)

from .calls import Next, answering, profile, request

DOWN = ServerError("down", status=503)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreakerInterceptor:
    """Opens after two failures, for ten seconds."""
    return CircuitBreakerInterceptor(2, 10.0, clock=clock)


async def outcome(
    breaker: CircuitBreakerInterceptor, call_next: Next, name: str = "p"
) -> type[BaseException] | None:
    """The class of what a call fails with, None for an answer."""
    try:
        await (await breaker(request(profile(name)), call_next)).wait()
    except LMClientError as error:
        return type(error)
    return None


async def fail(breaker: CircuitBreakerInterceptor, times: int, error: LMClientError = DOWN) -> None:
    for _ in range(times):
        await outcome(breaker, answering(error)[0])


@pytest.mark.parametrize(
    "error", [DOWN, ConnectError("refused"), TimeoutError("silent"), StreamInterruptedError("cut")]
)
async def test_failures_in_a_row_open_the_circuit(
    breaker: CircuitBreakerInterceptor, error: LMClientError
) -> None:
    await fail(breaker, 2, error)
    call_next, seen = answering(None)
    with pytest.raises(CircuitOpenError, match=r"'p' rests.*2 times in a row.*10\.0 s") as caught:
        await breaker(request(), call_next)
    assert caught.value.retry_after == 10.0
    assert not seen


@pytest.mark.parametrize(
    "error",
    [
        BadRequestError("wrong", status=400),
        RateLimitError("slow", status=429),
        ServerError("conflict", status=409),
        LMClientError("ours"),
    ],
)
async def test_errors_that_are_no_failure_do_not_open_it(
    breaker: CircuitBreakerInterceptor, error: LMClientError
) -> None:
    await fail(breaker, 5, error)
    assert await outcome(breaker, answering(None)[0]) is None


@pytest.mark.parametrize(("left", "opens"), [(0.0, False), (60.0, True)])
async def test_the_time_of_the_call_itself_does_not_open_it(
    breaker: CircuitBreakerInterceptor, left: float, opens: bool
) -> None:
    late = request(deadline=time.monotonic() + left)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await breaker(late, answering(TimeoutError("late"))[0])
    assert await outcome(breaker, answering(None)[0]) is (CircuitOpenError if opens else None)


async def test_an_answer_ends_the_row(breaker: CircuitBreakerInterceptor) -> None:
    for _ in range(3):
        await fail(breaker, 1)
        assert await outcome(breaker, answering(None)[0]) is None


async def test_a_refused_request_shows_that_the_server_works(breaker: CircuitBreakerInterceptor) -> None:
    for _ in range(3):
        await fail(breaker, 1)
        await fail(breaker, 1, BadRequestError("wrong", status=400))
    assert await outcome(breaker, answering(None)[0]) is None


async def test_other_profiles_go_on(breaker: CircuitBreakerInterceptor) -> None:
    await fail(breaker, 2)
    assert await outcome(breaker, answering(None)[0], "other") is None


async def test_after_the_rest_one_call_alone_tries(breaker: CircuitBreakerInterceptor, clock: Clock) -> None:
    await fail(breaker, 2)
    clock.now += 10
    answers = asyncio.Event()
    call_next, seen = answering(None)

    async def slow(asked: CompletionRequest) -> AsyncCompletionStream:
        await answers.wait()
        return await call_next(asked)

    probe = asyncio.create_task(outcome(breaker, slow))
    await asyncio.sleep(0)
    assert await outcome(breaker, slow) is CircuitOpenError
    answers.set()
    assert await probe is None
    assert await outcome(breaker, call_next) is None
    assert len(seen) == 2


async def test_a_failed_probe_opens_it_for_another_rest(
    breaker: CircuitBreakerInterceptor, clock: Clock
) -> None:
    await fail(breaker, 2)
    clock.now += 10
    await fail(breaker, 1)
    clock.now += 9
    assert await outcome(breaker, answering(None)[0]) is CircuitOpenError
    clock.now += 1
    assert await outcome(breaker, answering(None)[0]) is None


async def test_a_cancelled_probe_leaves_the_trying_to_the_next(
    breaker: CircuitBreakerInterceptor, clock: Clock
) -> None:
    await fail(breaker, 2)
    clock.now += 10

    async def hanging(asked: CompletionRequest) -> AsyncCompletionStream:
        return await asyncio.Event().wait()  # type: ignore[return-value]  # it never does

    probe = asyncio.create_task(outcome(breaker, hanging))
    await asyncio.sleep(0)
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    assert await outcome(breaker, answering(None)[0]) is None


class Broken:
    """A stream's source that stops after its first chunk."""

    def __init__(self) -> None:
        self._chunks = [(Chunk(text="a"),)]

    async def next_batch(self) -> Sequence[Chunk]:
        if self._chunks:
            return self._chunks.pop()
        raise StreamInterruptedError("cut")

    def result(self) -> Completion:
        return Completion(text="a")

    async def aclose(self) -> None: ...

    def abort(self) -> None: ...


async def breaking(asked: CompletionRequest) -> AsyncCompletionStream:
    return AsyncCompletionStream(Broken())


async def test_answers_that_always_break_off_open_it(breaker: CircuitBreakerInterceptor) -> None:
    for _ in range(2):
        assert await outcome(breaker, breaking) is StreamInterruptedError
    assert await outcome(breaker, breaking) is CircuitOpenError


async def test_a_probe_whose_answer_breaks_off_opens_it_anew(
    breaker: CircuitBreakerInterceptor, clock: Clock
) -> None:
    await fail(breaker, 2)
    clock.now += 10
    assert await outcome(breaker, breaking) is StreamInterruptedError
    assert await outcome(breaker, answering(None)[0]) is CircuitOpenError


async def test_a_late_answer_from_before_does_not_close_it(breaker: CircuitBreakerInterceptor) -> None:
    early = await breaker(request(), answering(None)[0])
    await fail(breaker, 2)
    await early.wait()
    assert await outcome(breaker, answering(None)[0]) is CircuitOpenError
