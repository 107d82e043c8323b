"""How long clients live: closing, several event loops, threads, forks, interrupts."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import errno
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lmclient import AsyncClient, Client, Hooks, LMClientError, ModelProfile, Settings
from lmclient.testing.fault import TEXT

from .conftest import Fault
from .sockets import open_sockets, settled
from .waiting import eventually

FaultOf = Callable[[str], Fault]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
needs_signals = pytest.mark.skipif(os.name == "nt", reason="presses Ctrl-C with a signal")
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="counts sockets in /proc")


# Closing


async def test_an_async_client_may_be_closed_twice(settings: Settings, fault: FaultOf) -> None:
    client = AsyncClient(settings)
    await client.complete(fault("ok").profile(), "Hello")
    await client.aclose()
    await client.aclose()


def test_a_client_may_be_closed_twice(settings: Settings, fault: FaultOf) -> None:
    client = Client(settings)
    client.complete(fault("ok").profile(), "Hello")
    client.close()
    client.close()


def test_an_interceptor_that_fails_to_close_keeps_nothing_else_open(
    settings: Settings, fault: FaultOf
) -> None:
    class Failing(Hooks):
        async def aclose(self) -> None:
            raise ValueError("not flushed")

    class Plain(Hooks):
        closed = False

        def aclose(self) -> None:
            self.closed = True

    plain = Plain()
    client = Client(settings, interceptors=[Failing(), plain])
    client.complete(fault("ok").profile(), "Hello")
    with pytest.raises(ValueError, match="not flushed"):
        client.close()
    assert plain.closed
    with pytest.raises(LMClientError, match="closed"):
        client.complete(fault("ok").profile(), "Hello")
    assert not any(thread.name == "lmclient" for thread in threading.enumerate())


def test_a_client_that_was_never_used_may_be_closed(settings: Settings) -> None:
    Client(settings).close()


@pytest.mark.parametrize("call", ["complete", "stream", "models"])
async def test_a_closed_async_client_says_so(settings: Settings, fault: FaultOf, call: str) -> None:
    ok = fault("ok")
    client = AsyncClient(settings)
    await client.complete(ok.profile(), "Hello")
    await client.aclose()
    with pytest.raises(LMClientError, match="client is closed"):
        await _called(client, call, ok.profile())
    assert ok.count("requests") == 1


async def _called(client: AsyncClient, call: str, profile: ModelProfile) -> None:
    if call == "complete":
        await client.complete(profile, "Hello")
    elif call == "models":
        await client.models(profile)
    else:
        async with client.stream(profile, "Hello"):
            pass


@pytest.mark.parametrize("call", ["complete", "stream", "models"])
def test_a_closed_client_says_so(settings: Settings, fault: FaultOf, call: str) -> None:
    ok = fault("ok")
    client = Client(settings)
    client.complete(ok.profile(), "Hello")
    client.close()
    with pytest.raises(LMClientError, match="client is closed"):
        (client.models(ok.profile()) if call == "models" else getattr(client, call)(ok.profile(), "Hello"))
    assert ok.count("requests") == 1


async def test_a_stream_entered_after_the_client_was_closed_says_so(
    settings: Settings, fault: FaultOf
) -> None:
    ok = fault("ok")
    client = AsyncClient(settings)
    await client.complete(ok.profile(), "Hello")
    stream = client.stream(ok.profile(), "Hello")
    await client.aclose()
    with pytest.raises(LMClientError, match="client is closed"):
        async with stream:
            pass
    assert ok.count("requests") == 1


async def test_a_call_that_waits_to_retry_ends_when_the_client_is_closed(
    settings: Settings, fault: FaultOf
) -> None:
    limited = fault("rate_limited_ms")
    client = AsyncClient(settings)
    call = asyncio.ensure_future(client.complete(limited.profile(), "Hello"))
    await asyncio.to_thread(eventually, lambda: limited.count("requests"))
    await client.aclose()
    with pytest.raises(LMClientError, match="client is closed"):
        await call
    assert limited.count("requests") == 1


async def test_closing_ends_the_streams_that_still_run(settings: Settings, fault: FaultOf) -> None:
    hanging = fault("hang_mid_stream")
    client = AsyncClient(settings)
    async with client.stream(hanging.profile(), "Hello") as stream:
        await anext(stream)
        await client.aclose()
        with pytest.raises(LMClientError):
            await stream.wait()
    assert await asyncio.to_thread(eventually, lambda: hanging.count("aborted")) == 1


def test_closing_from_another_thread_ends_a_running_stream(sync_client: Client, fault: FaultOf) -> None:
    """E12: the reading thread returns within a second."""
    hanging = fault("hang_mid_stream")
    threading.Timer(0.1, sync_client.close).start()
    with sync_client.stream(hanging.profile(), "Hello") as stream:
        began = time.monotonic()
        with pytest.raises(LMClientError):
            list(stream)
    assert time.monotonic() - began < 1.1
    assert eventually(lambda: hanging.count("aborted")) == 1


def test_closing_a_stream_from_another_thread_ends_it(sync_client: Client, fault: FaultOf) -> None:
    """E12: the same where only the stream is closed."""
    hanging = fault("hang_mid_stream")
    with sync_client.stream(hanging.profile(), "Hello") as stream:
        threading.Timer(0.1, stream.close).start()
        began = time.monotonic()
        try:
            texts = [chunk.text for chunk in stream]
        except LMClientError:
            texts = ["The"]
    assert texts[0] in ("", "The")
    assert time.monotonic() - began < 1.1
    assert eventually(lambda: hanging.count("aborted")) == 1


def test_closing_while_another_thread_waits_for_an_answer(sync_client: Client, fault: FaultOf) -> None:
    hanging = fault("hang")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(sync_client.complete, hanging.profile(), "Hello")
        eventually(lambda: hanging.count("requests"))
        sync_client.close()
        with pytest.raises(LMClientError):
            call.result(1)
    assert eventually(lambda: hanging.count("aborted")) == 1


def test_calls_of_other_threads_end_when_the_client_is_closed(settings: Settings, fault: FaultOf) -> None:
    """None of them waits for ever, whatever it was about to do."""
    profile = fault("ok").profile()

    def call_until_closed(client: Client) -> bool:
        with contextlib.suppress(LMClientError):
            while True:
                client.complete(profile, "Hello")
        return True

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for _ in range(20):
            client = Client(settings)
            calls = [pool.submit(call_until_closed, client) for _ in range(6)]
            client.complete(profile, "Hello")
            client.close()
            assert all(call.result(2) for call in calls)


# Threads and event loops


def test_threads_share_one_client(sync_client: Client, fault: FaultOf) -> None:
    profile = fault("ok").profile()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: sync_client.complete(profile, "Hello").text, range(64)))
    assert answers == [TEXT] * 64


async def test_a_client_works_inside_a_running_loop(sync_client: Client, fault: FaultOf) -> None:
    """As in a notebook."""
    profile = fault("ok").profile()
    with sync_client.stream(profile, "Hello") as stream:
        streamed = "".join(chunk.text for chunk in stream)
    assert (sync_client.complete(profile, "Hello").text, streamed) == (TEXT, TEXT)


def test_a_call_from_its_own_background_loop_is_refused(settings: Settings, fault: FaultOf) -> None:
    """It would wait for itself for ever."""
    profile = fault("ok").profile()

    async def careless(request: Any, call_next: Any) -> Any:
        client.complete(profile, "Hello")
        return await call_next(request)

    with (
        Client(settings, interceptors=[careless]) as client,
        pytest.raises(LMClientError, match="own event loop"),
    ):
        client.complete(profile, "Hello")


def test_a_call_that_ends_the_background_loop_leaves_nobody_waiting(
    settings: Settings, fault: FaultOf
) -> None:
    """As a tool does that calls `sys.exit`."""
    profile, entered = fault("ok").profile(), threading.Event()

    async def interceptor(request: Any, call_next: Any) -> Any:
        if request.tags.get("does") == "exit":
            sys.exit(3)
        if request.tags.get("does") == "wait":
            entered.set()
            await asyncio.Event().wait()
        return await call_next(request)

    client = Client(settings, interceptors=[interceptor])
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(client.complete, profile, "Hello", tags={"does": "wait"})
        assert entered.wait(10)
        with pytest.raises(SystemExit):
            client.complete(profile, "Hello", tags={"does": "exit"})
        with pytest.raises(LMClientError):
            waiting.result(10)
        for thread in threading.enumerate():
            if thread.name == "lmclient":
                thread.join(10)
        assert threads.submit(client.complete, profile, "Hello").result(10).text == TEXT
    client.close()


def test_a_background_loop_that_cannot_start_says_so(
    settings: Settings, fault: FaultOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    profile = fault("ok").profile()
    with Client(settings, interceptors=[]) as client, concurrent.futures.ThreadPoolExecutor(1) as threads:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "new_event_loop", refused)
            patch.setattr(asyncio.events, "new_event_loop", refused)
            with pytest.raises(OSError, match="Too many open files"):
                threads.submit(client.complete, profile, "Hello").result(10)
        assert client.complete(profile, "Hello").text == TEXT


def test_an_async_client_serves_one_loop_after_another(settings: Settings, fault: FaultOf) -> None:
    client, profile = AsyncClient(settings), fault("ok").profile()
    assert [asyncio.run(client.complete(profile, "Hello")).text for _ in range(3)] == [TEXT] * 3


def test_an_async_client_serves_two_loops_at_once(settings: Settings, fault: FaultOf) -> None:
    client, profile = AsyncClient(settings), fault("slow_stream").profile()

    def in_a_loop(_: int) -> str:
        return asyncio.run(client.complete(profile, "Hello")).text

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(in_a_loop, range(2))) == [TEXT] * 2


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("shared", [True, False], ids=["one client", "a client each"])
def test_two_hundred_event_loops_leave_no_socket(
    settings: Settings, fault: FaultOf, caplog: pytest.LogCaptureFixture, shared: bool
) -> None:
    """I02: also where nobody closes a client."""
    client, profile = AsyncClient(settings), fault("ok").profile()
    before = open_sockets()
    with caplog.at_level(logging.DEBUG):
        for _ in range(200):
            asyncio.run((client if shared else AsyncClient(settings)).complete(profile, "Hello"))
        gc.collect()
    assert settled(before) <= before
    assert "Unclosed" not in caplog.text


@pytest.mark.slow
@needs_proc
def test_two_hundred_short_threads_leave_no_socket(settings: Settings, fault: FaultOf) -> None:
    """I02: each with a client of its own that it forgets."""
    profile = fault("ok").profile()
    before, threads = open_sockets(), threading.active_count()

    def forgetful() -> None:
        Client(settings).complete(profile, "Hello")

    for _ in range(200):
        thread = threading.Thread(target=forgetful)
        thread.start()
        thread.join()
    gc.collect()
    assert settled(before) <= before
    assert eventually(lambda: threading.active_count() <= threads)


async def test_connections_are_used_again(client: AsyncClient, fault: FaultOf) -> None:
    ok = fault("ok")
    for _ in range(5):
        await client.complete(ok.profile(), "Hello")
        async with client.stream(ok.profile(), "Hello") as stream:
            await stream.wait()
    assert (ok.count("requests"), ok.count("connections")) == (10, 1)


# Interrupts


def _interrupting(arrived: Callable[[], Any]) -> threading.Thread:
    """A thread that presses Ctrl-C once `arrived` holds."""

    def interrupt() -> None:
        if eventually(arrived):
            os.kill(os.getpid(), signal.SIGINT)

    return threading.Thread(target=interrupt)


@needs_signals
def test_an_interrupt_cancels_the_call(sync_client: Client, fault: FaultOf) -> None:
    hanging = fault("hang")
    thread = _interrupting(lambda: hanging.count("requests"))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sync_client.complete(hanging.profile(), "Hello")
    thread.join()
    assert eventually(lambda: hanging.count("aborted")) == 1
    assert sync_client.complete(fault("ok").profile(), "Hello").text == TEXT


@needs_signals
def test_an_interrupt_ends_a_stream(sync_client: Client, fault: FaultOf) -> None:
    hanging = fault("hang_mid_stream")
    thread = _interrupting(lambda: hanging.count("requests"))

    def read() -> None:
        with sync_client.stream(hanging.profile(), "Hello") as stream:
            thread.start()
            for _ in stream:
                pass

    with pytest.raises(KeyboardInterrupt):
        read()
    thread.join()
    assert eventually(lambda: hanging.count("aborted")) == 1


# Forks


def _in_child(work: Callable[[], bool]) -> bool:
    """Whether `work` gives True in a forked child."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_parent_and_child_get_their_own_answers_after_a_fork(sync_client: Client, fault: FaultOf) -> None:
    """I04: neither reads from the other's connection."""
    own = fault("ok").profile()
    other = fault("length").profile()
    sync_client.complete(own, "Hello")
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                texts = [sync_client.complete(other, "Hello").text for _ in range(3)]
                code = 0 if texts == ["The quick brown"] * 3 else 2
            finally:
                os._exit(code)
        assert [sync_client.complete(own, "Hello").text for _ in range(3)] == [TEXT] * 3
        assert os.waitpid(pid, 0)[1] == 0


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_calls_while_the_parent_streams(sync_client: Client, fault: FaultOf) -> None:
    """I04"""
    slow, ok = fault("slow_stream").profile(), fault("ok").profile()
    with sync_client.stream(slow, "Hello") as stream:
        texts = [next(stream).text]
        assert _in_child(lambda: sync_client.complete(ok, "Hello").text == TEXT)
        texts += [chunk.text for chunk in stream]
    assert "".join(texts) == TEXT


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_closes_does_not_close_the_parents_connections(
    sync_client: Client, fault: FaultOf
) -> None:
    """I04"""
    ok = fault("ok")
    sync_client.complete(ok.profile(), "Hello")

    def close() -> bool:
        sync_client.close()
        return True

    assert _in_child(close)
    sync_client.complete(ok.profile(), "Hello")
    assert ok.count("connections") == 1


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_an_async_client_works_in_a_forked_child(settings: Settings, fault: FaultOf) -> None:
    """I04"""
    client, profile = AsyncClient(settings), fault("ok").profile()
    assert asyncio.run(client.complete(profile, "Hello")).text == TEXT
    assert _in_child(lambda: asyncio.run(client.complete(profile, "Hello")).text == TEXT)
    assert asyncio.run(client.complete(profile, "Hello")).text == TEXT
