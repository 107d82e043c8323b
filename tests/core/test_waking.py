"""Waking an event loop from other threads."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import errno
import gc
import os
import threading
from pathlib import Path

import pytest

from lmclient.core.waking import Waker, waker_of


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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
def test_what_is_called_on_a_loop_that_has_ended_does_not_keep_it() -> None:
    async def made() -> tuple[Waker, asyncio.Future[None]]:
        loop = asyncio.get_running_loop()
        return waker_of(loop), loop.create_future()

    def call_too_late() -> None:
        waker, future = asyncio.run(made())
        waker.call(lambda: future.set_result(None))

    call_too_late()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        call_too_late()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.usefixtures("kind")
def test_what_was_called_runs_although_an_interrupt_ended_the_loop_before() -> None:
    later = asyncio.Event()

    def interrupted() -> None:
        raise KeyboardInterrupt

    async def call() -> None:
        waker_of(loop).call(interrupted, later.set)
        await later.wait()

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        task = loop.create_task(call())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(task)
        loop.run_until_complete(asyncio.wait_for(task, 5))


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="this system has no eventfd")
async def test_callbacks_do_not_keep_the_context_of_the_first_call() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    loop = asyncio.get_running_loop()
    variable.set("of the first call")
    waker = waker_of(loop)
    seen = loop.create_future()
    waker.call(lambda: seen.set_result(variable.get()))
    assert await seen == "none"


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="this system has no eventfd")
async def test_a_loop_is_woken_although_no_more_files_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "eventfd", refused)
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    waker_of(loop).call(lambda: done.set_result(None))
    await done
