"""Limits of time on waits that nest."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from lmclient.errors import TimeoutError
from lmclient.providers.clock import Watchdog


async def part_of_a_wait(watchdog: Watchdog, waiting: asyncio.Event) -> str:
    """A wait whose part may take as long as it likes, but not longer than is allowed."""

    async def part() -> str:
        waiting.set()
        with contextlib.suppress(TimeoutError):
            await watchdog.wait(asyncio.Event().wait())
        return "went on"

    return await watchdog.wait(part())


async def test_time_that_runs_out_for_a_part_ends_only_that() -> None:
    watchdog, waiting = Watchdog(asyncio.get_running_loop(), None), asyncio.Event()
    task = asyncio.create_task(part_of_a_wait(watchdog, waiting))
    await waiting.wait()
    watchdog.allow(0, "idle")
    assert await task == "went on"
    assert not task.cancelling()


async def test_a_cancellation_at_the_moment_when_time_runs_out_is_one() -> None:
    loop = asyncio.get_running_loop()
    watchdog, waiting = Watchdog(loop, None), asyncio.Event()
    task = asyncio.create_task(part_of_a_wait(watchdog, waiting))
    await waiting.wait()
    watchdog.allow(0, "idle")
    loop.call_soon(task.cancel)  # in the same turn of the loop as the timer
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelling() == 1
