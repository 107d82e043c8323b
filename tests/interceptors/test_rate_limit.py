"""RateLimitInterceptor in virtual time."""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Any

import pytest

from lmclient import (
    AsyncCompletionStream,
    BadRequestError,
    Completion,
    CompletionRequest,
    ConnectError,
    ModelProfile,
    RateLimitInterceptor,
    RateLimitTimeoutError,
    ServerError,
    TimeoutError,
    Usage,
)
from lmclient.interceptors.base import chain
from lmclient.interceptors.retry import RetryInterceptor

from .calls import Next, answer, answering, profile, request, streamed
from .virtual_time import now, run

FITS = Usage(input_tokens=5, output_tokens=5)


def limited(name: str = "p", **limits: Any) -> ModelProfile:
    return profile(name, limits=limits)


def limiter(**options: Any) -> RateLimitInterceptor:
    return RateLimitInterceptor(clock=now, **options)


async def call(interceptor: RateLimitInterceptor, asked: CompletionRequest, call_next: Next) -> Completion:
    return await (await interceptor(asked, call_next)).wait()


def test_eleventh_request_of_a_minute_waits_for_the_next_minute() -> None:
    async def main() -> list[float]:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        times = []
        for _ in range(11):
            await call(interceptor, request(limited(requests_per_minute=10)), call_next)
            times.append(now() - 1000)
        return times

    assert run(main()) == [0.0] * 10 + [60.5]


def test_a_border_between_minutes_lets_no_double_through() -> None:
    async def main() -> list[float]:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        asked = limited(requests_per_minute=10)
        await asyncio.sleep(59)
        for _ in range(10):
            await call(interceptor, request(asked), call_next)
        await asyncio.sleep(2)
        await asyncio.gather(*(call(interceptor, request(asked), call_next) for _ in range(10)))
        return [now() - 1000]

    assert run(main()) == [59 + 60.5]


def test_a_wait_beyond_the_deadline_is_refused_at_once() -> None:
    async def main() -> float:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        asked = limited(requests_per_minute=1)
        await call(interceptor, request(asked), call_next)
        with pytest.raises(RateLimitTimeoutError, match=r"'p'.*60\.5 s.*30\.0 s left"):
            await call(interceptor, request(asked, deadline=now() + 30), call_next)
        return now()

    assert run(main()) == 1000.0


def test_the_wait_of_those_ahead_counts_towards_the_deadline() -> None:
    async def main() -> float:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        asked = limited(requests_per_minute=1)
        await call(interceptor, request(asked), call_next)
        async with asyncio.TaskGroup() as group:
            for _ in range(2):  # these are admitted after one and after two minutes
                group.create_task(call(interceptor, request(asked), call_next))
            await asyncio.sleep(1)
            with pytest.raises(RateLimitTimeoutError):
                await call(interceptor, request(asked, deadline=now() + 170), call_next)
            return now()

    assert run(main()) == 1001.0


def test_a_slot_that_stays_taken_is_waited_for_until_the_deadline() -> None:
    async def main() -> float:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        asked = limited(concurrency=1)
        held = await interceptor(request(asked), streamed(call_next))
        with pytest.raises(RateLimitTimeoutError, match="its time ran out"):
            await call(interceptor, request(asked, deadline=now() + 30), call_next)
        await held.aclose()
        return now()

    assert run(main()) == 1030.0


def test_without_wait_a_call_is_refused_instead_of_waiting() -> None:
    async def main() -> None:
        interceptor, (call_next, _) = limiter(wait=False), answering(FITS)
        asked = limited(requests_per_minute=1)
        await call(interceptor, request(asked), call_next)
        with pytest.raises(RateLimitTimeoutError, match="not to wait"):
            await call(interceptor, request(asked), call_next)

    run(main())


def test_a_call_that_can_never_fit_is_refused_at_once() -> None:
    async def main() -> None:
        call_next, seen = answering(FITS)
        with pytest.raises(RateLimitTimeoutError, match="tokens_per_minute = 500"):
            await call(limiter(), request(limited(tokens_per_minute=500), max_tokens=500), call_next)
        assert not seen

    run(main())


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_in_the_extra_body_is_what_the_answer_may_take(name: str) -> None:
    async def main() -> None:
        asked = request(limited(tokens_per_minute=100), max_tokens=10, extra_body={name: 500})
        with pytest.raises(RateLimitTimeoutError, match=r"may take 5\d\d tokens"):
            await call(limiter(), asked, answering(FITS)[0])

    run(main())


def test_an_assumed_length_of_the_answer_makes_no_call_impossible() -> None:
    async def main() -> None:
        call_next, seen = answering(FITS)
        await call(limiter(), request(limited(tokens_per_minute=100)), call_next)
        assert len(seen) == 1

    run(main())


def test_tokens_are_corrected_to_those_used() -> None:
    async def main() -> float:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        for _ in range(50):  # 500 tokens, though each may take 900
            await call(interceptor, request(limited(tokens_per_minute=1500), max_tokens=900), call_next)
        return now()

    assert run(main()) == 1000.0


def test_tokens_that_were_used_count_for_a_minute() -> None:
    async def main() -> float:
        interceptor = limiter()
        call_next, _ = answering(Usage(input_tokens=10, output_tokens=900))
        asked = limited(tokens_per_minute=1000)
        await call(interceptor, request(asked, max_tokens=900), call_next)
        await call(interceptor, request(asked, max_tokens=900), call_next)
        return now()

    assert run(main()) == 1060.5


def test_profiles_of_one_group_share_their_limit() -> None:
    async def main() -> float:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        for name in ("a", "b"):
            await call(interceptor, request(limited(name, requests_per_minute=1, group="g")), call_next)
        return now()

    assert run(main()) == 1060.5


def test_profiles_without_a_group_do_not_share() -> None:
    async def main() -> float:
        interceptor, (call_next, _) = limiter(), answering(FITS)
        for name in ("a", "b"):
            await call(interceptor, request(limited(name, requests_per_minute=1)), call_next)
        return now()

    assert run(main()) == 1000.0


def test_waiting_calls_are_served_in_their_order_though_a_smaller_one_would_fit() -> None:
    async def main() -> list[str]:
        interceptor = limiter()
        order: list[str] = []

        async def one(name: str, max_tokens: int) -> None:
            call_next, _ = answering(Usage(input_tokens=0, output_tokens=max_tokens))
            asked = request(limited(tokens_per_minute=1000), max_tokens=max_tokens)
            await call(interceptor, asked, call_next)
            order.append(name)

        await one("first", 600)
        await asyncio.gather(one("large", 900), one("small", 10))
        return order

    assert run(main()) == ["first", "large", "small"]


def test_a_cancelled_waiter_does_not_hold_up_the_line() -> None:
    async def main() -> int:
        interceptor, (call_next, seen) = limiter(), answering(FITS)
        asked = limited(concurrency=1)
        held = await interceptor(request(asked), streamed(call_next))
        waiting = [asyncio.create_task(call(interceptor, request(asked), call_next)) for _ in range(3)]
        await asyncio.sleep(1)
        waiting[0].cancel()
        await asyncio.sleep(1)
        await held.aclose()
        await asyncio.gather(*waiting, return_exceptions=True)
        return len(seen)

    assert run(main()) == 3


async def _cancelled_mid_stream(interceptor: RateLimitInterceptor, asked: CompletionRequest) -> None:
    call_next, _ = answering(FITS)

    async def read() -> None:
        async with await interceptor(asked, streamed(call_next)) as stream:
            async for _ in stream:
                await asyncio.sleep(100)

    reading = asyncio.create_task(read())
    await asyncio.sleep(1)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def _failing(interceptor: RateLimitInterceptor, asked: CompletionRequest, error: Exception) -> None:
    call_next, _ = answering(error)
    with pytest.raises(type(error)):
        await call(interceptor, asked, call_next)


async def _dropped(interceptor: RateLimitInterceptor, asked: CompletionRequest) -> None:
    streams = [await interceptor(asked, streamed(answering(FITS)[0]))]
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "end",
    [
        _cancelled_mid_stream,
        lambda *call: _failing(*call, TimeoutError("silent")),
        lambda *call: _failing(*call, BadRequestError("wrong")),
        lambda *call: _failing(*call, ValueError("an interceptor's own mistake")),
        _dropped,
    ],
    ids=["cancelled mid-stream", "provider timeout", "bad request", "interceptor exception", "dropped"],
)
def test_the_slot_is_free_however_a_call_ends(end: Any) -> None:
    async def main() -> None:
        interceptor = limiter()
        asked = limited(concurrency=1)
        await end(interceptor, request(asked))
        await call(interceptor, request(asked, deadline=now() + 1), answering(FITS)[0])

    run(main())


def test_a_stream_dropped_with_its_event_loop_frees_its_slot() -> None:
    interceptor = RateLimitInterceptor()
    asked = limited(concurrency=1)

    async def begin() -> AsyncCompletionStream:
        return await interceptor(request(asked), streamed(answering(FITS)[0]))

    streams = [asyncio.run(begin())]
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    gc.collect()

    async def again() -> None:
        await call(interceptor, request(asked), answering(FITS)[0])

    asyncio.run(asyncio.wait_for(again(), 1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_does_not_wait_for_what_its_parent_holds() -> None:
    interceptor = RateLimitInterceptor()
    asked = limited(concurrency=1)

    async def hold() -> None:
        held = await interceptor(request(asked), answering(FITS)[0])
        child = os.fork()
        if child == 0:
            asyncio.set_event_loop(None)
            asyncio.events._set_running_loop(None)
            calling = call(interceptor, request(asked), answering(FITS)[0])
            try:
                asyncio.run(asyncio.wait_for(calling, 5))
            except BaseException:
                os._exit(1)
            os._exit(0)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        await held.aclose()
        assert status == 0

    asyncio.run(hold())


def test_calls_that_an_interceptor_makes_of_one_request_are_counted_once_each() -> None:
    async def main() -> float:
        interceptor, asked = limiter(), request(limited(requests_per_minute=4, tokens_per_minute=10_000))
        call_next, _ = answering(FITS)
        first = await interceptor(asked, streamed(call_next))
        second = await interceptor(asked, streamed(call_next))
        await asyncio.gather(first.wait(), second.wait())
        assert len(asked.attempts) == 2
        await call(interceptor, asked, call_next)
        await call(interceptor, asked, call_next)
        return now()

    assert run(main()) == 1000.0


def test_a_failed_call_gives_its_tokens_back() -> None:
    async def main() -> float:
        interceptor = limiter()
        asked = limited(tokens_per_minute=1000)
        await _failing(interceptor, request(asked, max_tokens=900), ServerError("down", status=503))
        await call(interceptor, request(asked, max_tokens=900), answering(FITS)[0])
        return now()

    assert run(main()) == 1000.0


def test_a_failed_request_that_was_sent_counts_as_providers_count_it() -> None:
    async def main() -> float:
        interceptor = limiter()
        asked = limited(requests_per_minute=1)
        await _failing(interceptor, request(asked), BadRequestError("wrong", status=400))
        await call(interceptor, request(asked), answering(FITS)[0])
        return now()

    assert run(main()) == 1060.5


def test_a_request_that_was_never_sent_is_given_back() -> None:
    async def main() -> float:
        interceptor = limiter()
        asked = limited(requests_per_minute=1)
        await _failing(interceptor, request(asked), ConnectError("no route"))

        async def refuse(asked: CompletionRequest) -> AsyncCompletionStream:
            raise BadRequestError("found before sending")

        with pytest.raises(BadRequestError):
            await call(interceptor, request(asked), refuse)
        await call(interceptor, request(asked), answering(FITS)[0])
        return now()

    assert run(main()) == 1000.0


def test_each_retry_is_a_request_of_its_own() -> None:
    async def main() -> tuple[int, float]:
        interceptor = limiter()
        call_next, seen = answering(ServerError("down", status=503), FITS)
        links = [interceptor, RetryInterceptor(), interceptor.retries]
        asked = request(limited(requests_per_minute=1, concurrency=1))
        await (await chain(links, call_next)(asked)).wait()
        return len(seen), now()

    requests, time = run(main())
    assert requests == 2
    assert time >= 1060.5


def test_a_retry_does_not_stand_behind_those_who_wait_for_its_slot() -> None:
    async def main() -> int:
        interceptor = limiter()
        call_next, seen = answering(ServerError("down", status=503), FITS)
        links = chain([interceptor, RetryInterceptor(), interceptor.retries], call_next)
        asked = limited(requests_per_minute=100, concurrency=1)

        async def one() -> None:
            await (await links(request(asked))).wait()

        await asyncio.gather(one(), one())
        return len(seen)

    assert run(main()) == 3


def test_an_interceptor_that_asks_twice_needs_one_slot() -> None:
    async def main() -> str:
        interceptor, asked = limiter(), request(limited(concurrency=1), deadline=now() + 1)
        whole = await interceptor(asked, answering(FITS)[0])  # an answer that is read later
        await call(interceptor, asked, answering(FITS)[0])
        return (await whole.wait()).text

    assert run(main()) == "hello"


def test_event_loops_of_several_threads_share_one_limit() -> None:
    interceptor = RateLimitInterceptor()
    asked = limited(concurrency=2)
    running, most = 0, 0

    async def busy(asked: CompletionRequest) -> AsyncCompletionStream:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        answer(asked, usage=FITS)
        return AsyncCompletionStream.of(Completion(usage=FITS))

    async def main() -> None:
        await asyncio.gather(*(call(interceptor, request(asked), busy) for _ in range(20)))

    async def threads() -> None:
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, main()) for _ in range(4)))

    asyncio.run(asyncio.wait_for(threads(), 10))
    assert most == 2
