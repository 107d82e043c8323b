"""What a provider says of its own limits holds calls back, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from lmclient import (
    Completion,
    CompletionRequest,
    ModelProfile,
    ProviderLimits,
    RateLimitError,
    RateLimitInterceptor,
    RateLimitTimeoutError,
    Usage,
)
from lmclient.interceptors.base import chain
from lmclient.interceptors.retry import RetryInterceptor

from .calls import Next, answering, profile, request
from .virtual_time import now, run

FITS = Usage(input_tokens=5, output_tokens=5)


def limited(**limits: Any) -> ModelProfile:
    return profile(limits=limits)


def limiter(**options: Any) -> RateLimitInterceptor:
    return RateLimitInterceptor(clock=now, **options)


async def call(interceptor: RateLimitInterceptor, asked: CompletionRequest, call_next: Next) -> Completion:
    return await (await interceptor(asked, call_next)).wait()


@pytest.mark.parametrize("limits", [{}, {"concurrency": 8}], ids=["no limits", "own limits"])
@pytest.mark.parametrize(
    "said",
    [
        ProviderLimits(remaining_requests=0, requests_reset=7.0),
        ProviderLimits(remaining_tokens=0, tokens_reset=7.0),
    ],
    ids=["requests", "tokens"],
)
def test_nothing_left_at_the_provider_is_waited_for(limits: dict[str, int], said: ProviderLimits) -> None:
    async def main() -> float:
        interceptor = limiter()
        asked = limited(**limits)
        await call(interceptor, request(asked), answering(FITS, limits=said)[0])
        await call(interceptor, request(asked), answering(FITS)[0])
        return now()

    assert run(main()) == pytest.approx(1007.0)


def test_no_more_calls_go_out_than_the_provider_has_left() -> None:
    async def main() -> tuple[int, float]:
        interceptor = limiter()
        said = ProviderLimits(remaining_requests=2, requests_reset=7.0)
        await call(interceptor, request(limited()), answering(FITS, limits=said)[0])
        call_next, seen = answering(FITS)
        calls = [asyncio.create_task(call(interceptor, request(limited()), call_next)) for _ in range(5)]
        await asyncio.sleep(1)
        early = len(seen)
        await asyncio.gather(*calls)
        return early, now()

    assert run(main()) == (2, pytest.approx(1007.0))


def test_all_calls_wait_as_long_as_the_provider_asks() -> None:
    async def main() -> float:
        interceptor = limiter()
        asked = limited(concurrency=8)
        said = ProviderLimits(retry_after=7.0)
        call_next, _ = answering(RateLimitError("slow down", status=429, retry_after=7.0), limits=said)
        with pytest.raises(RateLimitError):
            await call(interceptor, request(asked), call_next)
        await call(interceptor, request(asked), answering(FITS)[0])
        return now()

    assert run(main()) == pytest.approx(1007.0)


@pytest.mark.parametrize(("seconds", "until"), [(4.0, 1004.0), (8.0, 1000.0)])
def test_a_provider_is_waited_for_as_long_as_retries_would_wait(seconds: float, until: float) -> None:
    async def main() -> float:
        interceptor = limiter(max_wait=5.0)
        said = ProviderLimits(retry_after=seconds)
        call_next, _ = answering(RateLimitError("slow down", status=429), limits=said)
        with pytest.raises(RateLimitError):
            await call(interceptor, request(limited()), call_next)
        with contextlib.suppress(RateLimitTimeoutError):
            await call(interceptor, request(limited()), answering(FITS)[0])
        return now()

    assert run(main()) == pytest.approx(until)


@pytest.mark.parametrize(
    ("limits", "reset", "earliest"),
    [({}, 7.0, 1007.0), ({"concurrency": 8}, 7.0, 1007.0), ({}, 50.0, 1000.0)],
    ids=["no limits", "own limits", "too long"],
)
def test_a_retry_waits_until_the_provider_has_something_left(
    limits: dict[str, int], reset: float, earliest: float
) -> None:
    async def main() -> float:
        interceptor = limiter()
        said = ProviderLimits(
            remaining_requests=3, requests_reset=9.0, remaining_tokens=0, tokens_reset=reset
        )
        call_next, _ = answering(RateLimitError("slow down", status=429), FITS, limits=said)
        links = [interceptor, RetryInterceptor(max_wait=30), interceptor.retries]
        await (await chain(links, call_next)(request(limited(**limits)))).wait()
        return now()

    assert earliest <= run(main()) < earliest + 1


def test_a_provider_that_asks_for_an_hour_holds_nobody_back() -> None:
    async def main() -> float:
        interceptor = limiter()
        said = ProviderLimits(retry_after=3600.0, remaining_requests=0, requests_reset=3600.0)
        await call(interceptor, request(limited()), answering(FITS, limits=said)[0])
        await call(interceptor, request(limited()), answering(FITS)[0])
        return now()

    assert run(main()) == 1000.0
