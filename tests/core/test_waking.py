"""Waking an event loop from other threads."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest

from lmclient.core.waking import waker_of


@pytest.fixture(params=["eventfd", "socket"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of waking: the second is that of systems without an eventfd."""
    if request.param == "socket":
        monkeypatch.delattr(os, "eventfd", raising=False)
    elif not hasattr(os, "eventfd"):
        pytest.skip("this system has no eventfd")
    return str(request.param)


@pytest.mark.usefixtures("kind")
async def test_callbacks_of_a_thread_run_on_the_loop_in_their_order() -> None:
    loop = asyncio.get_running_loop()
    waker, done = waker_of(loop), loop.create_future()
    seen: list[tuple[int, int]] = []

    def note(number: int) -> None:
        seen.append((number, threading.get_ident()))

    def work() -> None:
        for number in range(0, 1000, 2):
            waker.call(lambda n=number: note(n), lambda n=number + 1: note(n))  # type: ignore[misc]
        waker.call(lambda: done.set_result(None))

    thread = threading.Thread(target=work)
    thread.start()
    await done
    thread.join()
    assert seen == [(number, threading.get_ident()) for number in range(1000)]


@pytest.mark.usefixtures("kind")
async def test_a_loop_has_one_waker() -> None:
    loop = asyncio.get_running_loop()
    assert waker_of(loop) is waker_of(loop)


@pytest.mark.usefixtures("kind")
def test_a_loop_that_has_ended_is_woken_in_vain() -> None:
    async def made() -> object:
        return waker_of(asyncio.get_running_loop())

    called: list[int] = []
    asyncio.run(made()).call(lambda: called.append(1))  # type: ignore[attr-defined]
    assert called == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
def test_no_file_is_left_open_for_loops_that_have_ended() -> None:
    async def wake() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        waker_of(loop).call(lambda: done.set_result(None))
        await done

    asyncio.run(wake())
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        asyncio.run(wake())
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
