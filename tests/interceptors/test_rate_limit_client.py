"""Rate limits in the default chain, counted at the server."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    BadRequestError,
    LMClientError,
    ModelProfile,
    RateLimitTimeoutError,
    Settings,
    StreamInterruptedError,
    TimeoutError,
)
from lmclient.testing import FaultProvider

_keys = itertools.count(1)
Asked = Callable[..., ModelProfile]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(Settings(data_dir=tmp_path)) as opened:
        yield opened


@pytest.fixture
def asked(fault_provider: FaultProvider) -> Asked:
    """`asked(scenario, …limits)`: a profile that leads there, with a counter of its own."""

    def make(scenario: str, **limits: Any) -> ModelProfile:
        return ModelProfile(
            name=f"limited{next(_keys)}",
            provider="openai-chat",
            model="mock",
            url=fault_provider.url(scenario, key=f"limit{next(_keys)}"),
            api_key="sk-1",
            timeouts={"first_byte": 0.2, "idle": 0.2},
            limits=limits,
        )

    return make


def requests_at(provider: FaultProvider, profile: ModelProfile) -> int:
    name = profile.url.split("/")[-2]
    return int(provider.stats()[name]["requests"])


async def test_no_more_requests_reach_the_server_than_a_minute_allows(
    client: AsyncClient, asked: Asked, fault_provider: FaultProvider
) -> None:
    profile = asked("ok", requests_per_minute=5)
    started = time.monotonic()
    results = await asyncio.gather(
        *(client.complete(profile, "hi", timeout=20) for _ in range(20)), return_exceptions=True
    )
    assert sum(isinstance(result, RateLimitTimeoutError) for result in results) == 15
    assert requests_at(fault_provider, profile) == 5
    assert time.monotonic() - started < 10  # the others were not kept waiting


async def test_retries_count_as_the_requests_that_they_are(
    client: AsyncClient, asked: Asked, fault_provider: FaultProvider
) -> None:
    profile = asked("server_error_once", requests_per_minute=1)
    with pytest.raises(RateLimitTimeoutError):
        await client.complete(profile, "hi", timeout=20)
    assert requests_at(fault_provider, profile) == 1


async def _cancel(client: AsyncClient, profile: ModelProfile) -> None:
    reading = asyncio.Event()

    async def read() -> None:
        async with client.stream(profile, "hi") as stream:
            async for _ in stream:
                reading.set()

    task = asyncio.create_task(read())
    await reading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _drop(client: AsyncClient, profile: ModelProfile) -> None:
    streams = [await client.stream(profile, "hi").__aenter__()]
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()


def _failing(error: type[LMClientError]) -> Callable[[AsyncClient, ModelProfile], Any]:
    async def fail(client: AsyncClient, profile: ModelProfile) -> None:
        async with client.stream(profile, "hi", timeout=2) as stream:
            await stream.wait()

    async def run(client: AsyncClient, profile: ModelProfile) -> None:
        with pytest.raises(error):
            await fail(client, profile)

    return run


@pytest.mark.parametrize(
    ("scenario", "end"),
    [
        ("slow_stream", _cancel),
        ("slow_stream", _drop),
        ("hang", _failing(TimeoutError)),
        ("hang_mid_stream", _failing(TimeoutError)),
        ("reset_mid_stream", _failing(StreamInterruptedError)),
        ("bad_request", _failing(BadRequestError)),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_the_only_slot_is_free_again(
    client: AsyncClient, asked: Asked, scenario: str, end: Any
) -> None:
    limits = {"concurrency": 1, "group": f"slot{next(_keys)}"}
    await end(client, asked(scenario, **limits))
    assert (await client.complete(asked("ok", **limits), "hi", timeout=10)).text
