"""Limits that processes share on a real Redis."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis.asyncio

from lmclient import (
    ConfigurationError,
    LMClientError,
    ModelProfile,
    RateLimitInterceptor,
    RateLimitTimeoutError,
    Usage,
)
from lmclient.limits.base import Demand, Lease
from lmclient.limits.limiter import Limiter
from lmclient.limits.redis import RedisStore

from . import redis_proxy, redis_server
from .calls import answering, profile, request

WORKER = Path(__file__).with_name("redis_worker.py")


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server.running(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def scope(request: pytest.FixtureRequest) -> str:
    """A scope of the test's own."""
    return request.node.name


@pytest.fixture
async def limiters(redis_url: str) -> AsyncIterator[tuple[Limiter, Limiter]]:
    """Two that share one limit as two machines do."""
    two = (over(redis_url), over(redis_url))
    yield two
    for limiter in two:
        await limiter.aclose()


def over(url: str, span: float = 60.0) -> Limiter:
    return Limiter(lambda freed: RedisStore(url, freed, span=span), time.monotonic)


def soon() -> float:
    return time.monotonic() + 0.2


async def is_full(limiter: Limiter, demand: Demand) -> bool:
    try:
        await limiter.admit(demand, None, wait=False)
    except RateLimitTimeoutError:
        return True
    return False


def test_two_processes_never_exceed_a_shared_limit(redis_url: str) -> None:
    calls, span, limit = 50, 0.3, 20
    command = [sys.executable, str(WORKER), redis_url, str(calls), str(span), str(limit)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [worker.communicate(timeout=60)[0].split() for worker in workers]
    times = sorted(float(line) for output in outputs for line in output)
    assert len(times) == 2 * calls
    # The time is read when the answer of Redis has arrived, hence the margin.
    spans = [later - earlier for earlier, later in zip(times, times[limit:], strict=False)]
    assert min(spans) > span - 0.1


async def test_requests_of_one_machine_fill_the_limit_of_the_other(
    limiters: tuple[Limiter, Limiter], scope: str
) -> None:
    demand = Demand(scope=scope, requests_per_minute=2)
    await limiters[0].admit(demand, None)
    await limiters[0].admit(demand, None)
    with pytest.raises(RateLimitTimeoutError, match=r"no room for the call for the next 60\.0 s"):
        await limiters[1].admit(demand, time.monotonic() + 30)


async def test_a_slot_given_back_on_one_machine_serves_the_other(
    limiters: tuple[Limiter, Limiter], scope: str
) -> None:
    demand = Demand(scope=scope, concurrency=1)
    lease = await limiters[0].admit(demand, None)
    waiting = asyncio.create_task(limiters[1].admit(demand, None))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await lease.settle(1, 0)
    await asyncio.wait_for(waiting, 5)


async def test_all_limits_are_taken_or_none(limiters: tuple[Limiter, Limiter], scope: str) -> None:
    full = Demand(scope=scope, tokens=100, tokens_per_minute=150, requests_per_minute=2)
    await limiters[0].admit(full, None)
    assert await is_full(limiters[1], full)
    await limiters[1].admit(Demand(scope=scope, requests_per_minute=2), None)


async def test_tokens_are_corrected(limiters: tuple[Limiter, Limiter], scope: str) -> None:
    demand = Demand(scope=scope, tokens=900, tokens_per_minute=1000)
    for limiter in limiters:
        lease = await limiter.admit(demand, soon())
        await lease.settle(1, 10)
    assert not await is_full(limiters[0], demand)


async def test_tokens_used_for_good_are_known_to_last(limiters: tuple[Limiter, Limiter], scope: str) -> None:
    demand = Demand(scope=scope, tokens=900, tokens_per_minute=1000)
    lease = await limiters[0].admit(demand, None)
    await lease.settle(1, 900)
    with pytest.raises(RateLimitTimeoutError, match="for the next"):
        await limiters[1].admit(demand, time.monotonic() + 30)


async def test_a_request_that_was_not_sent_is_given_back(
    limiters: tuple[Limiter, Limiter], scope: str
) -> None:
    demand = Demand(scope=scope, requests_per_minute=1)
    lease = await limiters[0].admit(demand, None)
    await lease.settle(0, 0)
    assert not await is_full(limiters[1], demand)


async def test_settling_twice_changes_nothing(limiters: tuple[Limiter, Limiter], scope: str) -> None:
    demand = Demand(scope=scope, tokens=100, tokens_per_minute=150)
    lease = await limiters[0].admit(demand, None)
    await lease.settle(1, 100)
    await lease.settle(0, 0)
    assert await is_full(limiters[0], demand)


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmclient.limits.redis.LEASE", 0.2)
    monkeypatch.setattr("lmclient.limits.redis.RENEW", 0.05)


@pytest.mark.usefixtures("short_leases")
async def test_the_slot_of_a_process_that_died_is_free_after_a_while(redis_url: str, scope: str) -> None:
    dead, living = over(redis_url), over(redis_url)
    demand = Demand(scope=scope, concurrency=1)
    await dead.admit(demand, None)
    await dead.aclose()  # its slots are not renewed any more
    lease = await living.admit(demand, time.monotonic() + 5)
    await lease.settle(1, 0)
    await living.aclose()


@pytest.mark.usefixtures("short_leases")
async def test_the_slot_of_a_long_call_is_kept(limiters: tuple[Limiter, Limiter], scope: str) -> None:
    demand = Demand(scope=scope, concurrency=1)
    lease = await limiters[0].admit(demand, None)
    with pytest.raises(RateLimitTimeoutError, match="its time ran out"):
        await limiters[1].admit(demand, time.monotonic() + 0.5)
    await lease.settle(1, 0)


async def test_machines_take_turns(redis_url: str, scope: str) -> None:
    demand = Demand(scope=scope, concurrency=1)
    one, other = over(redis_url), over(redis_url)
    order: list[str] = []
    first = await one.admit(demand, None)

    async def queue(name: str, limiter: Limiter) -> None:
        lease = await limiter.admit(demand, None)
        order.append(name)
        await lease.settle(1, 0)

    async def enter(name: str, limiter: Limiter) -> asyncio.Task[None]:
        task = asyncio.create_task(queue(name, limiter))
        await asyncio.sleep(0.02)
        return task

    tasks = [
        await enter("a1", one),
        await enter("b1", other),
        await enter("a2", one),
        await enter("b2", other),
    ]
    await first.settle(1, 0)
    await asyncio.gather(*tasks)
    assert order == ["a1", "b1", "a2", "b2"]
    await one.aclose()
    await other.aclose()


async def test_calls_made_at_once_are_served_as_they_were_made(
    limiters: tuple[Limiter, Limiter], scope: str
) -> None:
    demand = Demand(scope=scope, concurrency=1)
    order: list[int] = []

    async def call(number: int) -> None:
        lease = await limiters[0].admit(demand, None)
        order.append(number)
        await lease.settle(1, 0)

    for _ in range(2):  # with connections to be made, and with ready ones
        await asyncio.gather(*(call(number) for number in range(10)))
    assert order == [*range(10)] * 2


async def test_calls_made_at_once_that_are_not_to_wait_find_the_room_there_is(
    limiters: tuple[Limiter, Limiter], scope: str
) -> None:
    demand = Demand(scope=scope, requests_per_minute=3)
    assert await asyncio.gather(*(is_full(limiters[0], demand) for _ in range(5))) == [False] * 3 + [True] * 2


async def test_a_cancelled_wait_takes_nothing(limiters: tuple[Limiter, Limiter], scope: str) -> None:
    demand = Demand(scope=scope, concurrency=1)
    held = await limiters[0].admit(demand, None)
    waiting = asyncio.create_task(limiters[1].admit(demand, None))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await held.settle(1, 0)
    lease: Lease = await limiters[0].admit(demand, time.monotonic() + 10)
    await lease.settle(1, 0)


async def test_a_connection_that_redis_has_closed_is_replaced(
    redis_url: str, limiters: tuple[Limiter, Limiter], scope: str
) -> None:
    demand = Demand(scope=scope, concurrency=1)
    await (await limiters[0].admit(demand, None)).settle(1, 0)
    await limiters[1].admit(Demand(scope="another"), None)
    async with redis.asyncio.Redis.from_url(redis_url) as admin:
        await admin.client_kill_filter(_type="normal", skipme=True)
    for limiter in limiters:
        await (await limiter.admit(demand, None)).settle(1, 0)


async def test_a_call_whose_answer_got_lost_is_counted_once(redis_url: str, scope: str) -> None:
    demand = Demand(scope=scope, tokens=10, tokens_per_minute=30, requests_per_minute=3)
    async with redis_proxy.running(redis_url) as proxy:
        limiter = over(proxy.url)
        await limiter.admit(demand, None)
        proxy.loses = "closing"
        await limiter.admit(demand, None)
        assert proxy.loses is None
        assert not await is_full(limiter, demand)
        assert await is_full(limiter, demand)
        await limiter.aclose()


async def test_what_a_redis_that_hung_has_taken_is_given_back(
    redis_url: str, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand = Demand(scope=scope, tokens=100, tokens_per_minute=100, concurrency=1)
    async with redis_proxy.running(redis_url) as proxy:
        limiter = over(proxy.url)
        await (await limiter.admit(demand, None)).settle(0, 0)
        await limiter.aclose()
        monkeypatch.setattr("lmclient.limits.redis.ANSWER", 0.1)
        proxy.loses = "silent"
        with pytest.raises(LMClientError, match="Timeout"):
            await limiter.admit(demand, None)
        lease = await limiter.admit(demand, time.monotonic() + 5)
        await lease.settle(1, 0)
        await limiter.aclose()


async def test_the_interceptor_shares_its_limit(redis_url: str) -> None:
    asked: ModelProfile = profile("shared", limits={"requests_per_minute": 1})
    two = [RateLimitInterceptor(redis_url), RateLimitInterceptor(redis_url, wait=False)]
    call_next, seen = answering(Usage(input_tokens=1))
    await (await two[0](request(asked), call_next)).wait()
    with pytest.raises(RateLimitTimeoutError, match="'shared'"):
        await two[1](request(asked), call_next)
    assert len(seen) == 1
    for interceptor in two:
        await interceptor.aclose()


async def test_a_redis_that_is_not_there_fails_the_call_and_hides_its_password() -> None:
    interceptor = RateLimitInterceptor("redis://:secret-pw@127.0.0.1:1/0")
    with pytest.raises(LMClientError, match=r"rate_limit\.storage_url") as caught:
        await interceptor(request(profile(limits={"concurrency": 1})), answering()[0])
    assert "secret-pw" not in str(caught.value)
    await interceptor.aclose()


@pytest.mark.parametrize(
    "url",
    ["redis://:secret-pw@host/0?bogus=1", "redis://:secret-pw@host:notaport/0", "redis://:secret/pw@host"],
)
def test_a_url_that_is_none_is_refused_when_the_interceptor_is_made(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"rate_limit\.storage_url is no URL") as caught:
        RateLimitInterceptor(url)
    assert "secret" not in str(caught.value)


async def test_a_redis_that_hangs_does_not_hold_a_call_longer_than_a_moment() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    interceptor = RateLimitInterceptor(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0")
    call = interceptor(request(profile(limits={"concurrency": 1})), answering()[0])
    with pytest.raises(LMClientError, match="Timeout"):
        await asyncio.wait_for(call, 4)
    await interceptor.aclose()
    server.close()
