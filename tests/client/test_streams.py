"""Streams that end early, run slow or are forgotten."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    AsyncCompletionStream,
    Client,
    CompletionStream,
    LMClientError,
    ModelProfile,
    Settings,
    StreamInterruptedError,
    errors,
)
from lmclient.testing.fault import TEXT

from .conftest import Fault
from .servers import FINISH, STREAM_HEAD, answering, delta, serving
from .waiting import eventually, forget

FaultOf = Callable[[str], Fault]


async def closed(fault: Fault) -> bool:
    """Whether the server has seen the client go within a second."""
    return bool(await asyncio.to_thread(eventually, lambda: fault.count("aborted"), 1.0))


def profile_at(port: int, **values: Any) -> ModelProfile:
    return ModelProfile(provider="openai-chat", model="mock", url=f"http://127.0.0.1:{port}", **values)


# Leaving early


async def test_a_break_closes_the_connection(client: AsyncClient, fault: FaultOf) -> None:
    """E08 (a)"""
    endless = fault("hang_mid_stream")
    async with client.stream(endless.profile(), "Hello") as stream:
        async for _ in stream:
            break
    assert await closed(endless)


async def test_a_stream_left_early_has_what_had_arrived(client: AsyncClient, fault: FaultOf) -> None:
    async with client.stream(fault("hang_mid_stream").profile(), "Hello") as stream:
        async for chunk in stream:
            if chunk.text == " brown":
                break
    assert (stream.completion.text, stream.completion.usage.estimated) == ("The quick brown", True)


async def test_a_cancelled_consumer_closes_the_connection(client: AsyncClient, fault: FaultOf) -> None:
    """E08 (b)"""
    endless = fault("hang_mid_stream")
    reading = asyncio.Event()

    async def read() -> None:
        async with client.stream(endless.profile(), "Hello") as stream:
            async for _ in stream:
                reading.set()

    task = asyncio.ensure_future(read())
    await reading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await closed(endless)


async def test_a_cancelled_complete_closes_the_connection(client: AsyncClient, fault: FaultOf) -> None:
    endless = fault("hang")
    task = asyncio.ensure_future(client.complete(endless.profile(), "Hello"))
    await asyncio.to_thread(eventually, lambda: endless.count("requests"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await closed(endless)


async def test_an_error_in_the_loop_closes_the_connection(client: AsyncClient, fault: FaultOf) -> None:
    """E08 (c)"""
    endless = fault("hang_mid_stream")

    async def read() -> None:
        async with client.stream(endless.profile(), "Hello") as stream:
            async for _ in stream:
                raise ValueError("the consumer's own")

    with pytest.raises(ValueError, match="the consumer's own"):
        await read()
    assert await closed(endless)


async def test_a_dropped_stream_warns_and_closes_the_connection(client: AsyncClient, fault: FaultOf) -> None:
    """E08 (d)"""
    endless = fault("hang_mid_stream")
    streams = [await client.stream(endless.profile(), "Hello").__aenter__()]
    await anext(streams[0])
    with pytest.warns(ResourceWarning, match="dropped before its end"):
        forget(streams)
    assert await closed(endless)


async def test_iterating_without_a_with_block_works_to_the_end(client: AsyncClient, fault: FaultOf) -> None:
    texts = [chunk.text async for chunk in client.stream(fault("ok").profile(), "Hello")]
    assert "".join(texts) == TEXT


def test_a_break_of_the_sync_client_closes_the_connection(sync_client: Client, fault: FaultOf) -> None:
    endless = fault("hang_mid_stream")
    with sync_client.stream(endless.profile(), "Hello") as stream:
        for _ in stream:
            break
    assert asyncio.run(closed(endless))


def test_a_dropped_sync_stream_warns_and_closes_the_connection(sync_client: Client, fault: FaultOf) -> None:
    """E08 (d)"""
    endless = fault("hang_mid_stream")
    streams = [sync_client.stream(endless.profile(), "Hello").__enter__()]
    next(streams[0])
    with pytest.warns(ResourceWarning, match="dropped before its end"):
        forget(streams)
    assert asyncio.run(closed(endless))


def test_a_thread_whose_stream_another_one_closes_is_told_so(sync_client: Client, fault: FaultOf) -> None:
    got: list[Any] = []

    def read(stream: CompletionStream) -> None:
        try:
            got.extend(stream)
        except LMClientError as error:
            got.append(error)

    with sync_client.stream(fault("hang_mid_stream").profile(), "Hello") as stream:
        assert next(stream).text == "The"
        running = sync_client._background._running
        assert running is not None
        reader = threading.Thread(target=read, args=(stream,))
        reader.start()
        assert eventually(lambda: len(got) == 2 and bool(running.calls))
        stream.close()
        reader.join()
    *_, error = got
    assert type(error) is LMClientError
    assert "closed by another thread" in str(error)
    assert error.partial is not None
    assert error.partial.text == "The quick brown"


async def test_the_completion_of_a_running_stream_is_not_there_yet(
    client: AsyncClient, fault: FaultOf
) -> None:
    async with client.stream(fault("slow_stream").profile(), "Hello") as stream:
        with pytest.raises(LMClientError, match="not ended yet"):
            _ = stream.completion


async def test_a_closed_stream_cannot_be_entered(client: AsyncClient, fault: FaultOf) -> None:
    ok = fault("ok")
    stream = client.stream(ok.profile(), "Hello")
    await stream.aclose()
    with pytest.raises(LMClientError, match="stream is closed"):
        await stream.__aenter__()
    assert ok.count("requests") is None


# Slots


SLOT = {"limits": {"concurrency": 1}}


async def _broken(client: AsyncClient, profile: ModelProfile, way: str) -> None:
    """One call that ends in this way."""
    stream = client.stream(profile, "Hello")
    if way == "break":
        async with stream:
            await anext(stream)
    elif way == "drop":
        await anext(await stream.__aenter__())
        streams = [stream]
        del stream
        with pytest.warns(ResourceWarning):
            forget(streams)
    elif way == "cancel":
        task = asyncio.ensure_future(stream.wait())
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        del task, stream
    else:
        with pytest.raises(LMClientError):
            await stream.wait()


@pytest.mark.parametrize(
    ("scenario", "way"),
    [
        ("hang_mid_stream", "break"),
        ("hang_mid_stream", "drop"),
        ("hang_mid_stream", "cancel"),
        ("hang", "cancel"),
        ("hang", "timeout"),
        ("hang_mid_stream", "timeout"),
        ("bad_request", "error"),
        ("truncated_stream", "error"),
        ("error_event", "error"),
    ],
)
async def test_a_slot_is_given_back_however_a_call_ends(
    client: AsyncClient, fault: FaultOf, scenario: str, way: str
) -> None:
    """G02"""
    limits = {"first_byte": 0.2, "idle": 0.2} if way == "timeout" else {}
    await _broken(client, fault(scenario).profile(**SLOT, name="one", timeouts=limits), way)
    async with asyncio.timeout(2):
        answer = await client.complete(fault("ok").profile(**SLOT, name="one"), "Hello")
    assert answer.text == TEXT


async def test_no_more_calls_run_at_once_than_allowed(client: AsyncClient, fault: FaultOf) -> None:
    slow = fault("slow_stream")
    profile = slow.profile(limits={"concurrency": 2})
    await asyncio.gather(*(client.complete(profile, "Hello") for _ in range(4)))
    assert slow.count("max_in_flight") == 2


async def test_waiting_for_a_slot_ends_with_the_calls_time(client: AsyncClient, fault: FaultOf) -> None:
    profile = fault("hang_mid_stream").profile(**SLOT)
    async with client.stream(profile, "Hello"):
        with pytest.raises(errors.RateLimitTimeoutError, match="time ran out"):
            await client.complete(profile, "Hello", timeout=0.1)


# Delivery


async def test_chunks_are_delivered_as_they_come(client: AsyncClient) -> None:
    """B12: each is there before the server writes the next one."""
    taken = asyncio.Event()
    behind = []

    async def one_by_one(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for number in range(20):
            taken.clear()
            writer.write(delta(f"{number} "))
            try:
                async with asyncio.timeout(1):
                    await taken.wait()
            except TimeoutError:
                behind.append(number)
        writer.write(FINISH)

    async with serving(one_by_one) as port, client.stream(profile_at(port), "Hello") as stream:
        async for chunk in stream:
            if chunk.text:
                taken.set()
    assert behind == []
    assert stream.completion.text == "".join(f"{number} " for number in range(20))


async def _collect(stream: AsyncCompletionStream, texts: list[str]) -> None:
    async for chunk in stream:
        texts.append(chunk.text)


async def test_a_slow_reader_gets_all_that_arrived_before_the_connection_broke(client: AsyncClient) -> None:
    gone = asyncio.Event()

    async def break_off(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD.replace(b"connection: close", b"content-length: 100000") + delta("one"))
        await asyncio.sleep(0.02)  # the head and the first event are a read of their own
        writer.write(delta(" two"))
        await asyncio.sleep(0.02)
        writer.write(delta(" three"))
        writer.close()
        await writer.wait_closed()
        gone.set()

    texts = []
    async with serving(break_off) as port, client.stream(profile_at(port), "Hello") as stream:
        texts.append((await anext(stream)).text)
        await gone.wait()
        await asyncio.sleep(0.02)  # for the client's loop to notice
        with pytest.raises(StreamInterruptedError) as caught:
            await _collect(stream, texts)
    assert texts == ["one", " two", " three"]
    assert caught.value.partial is not None
    assert caught.value.partial.text == "one two three"


async def test_a_stream_is_not_tried_again_after_its_first_chunk(client: AsyncClient, fault: FaultOf) -> None:
    broken = fault("reset_mid_stream")
    with pytest.raises(StreamInterruptedError):
        await client.stream(broken.profile(), "Hello").wait()
    assert broken.count("requests") == 1


async def test_a_long_line_is_delivered(client: AsyncClient) -> None:
    """B08: 3 MiB in one line."""
    text = "x" * (3 * 2**20)

    async def long_line(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + delta(text) + FINISH)

    async with serving(long_line) as port:
        answer = await client.stream(profile_at(port), "Hello").wait()
    assert answer.text == text


# Time


def _timed(script: list[tuple[float, bytes]]) -> Any:
    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for pause, data in script:
            await asyncio.sleep(pause)
            writer.write(data)
            await writer.drain()
        await asyncio.Event().wait()

    return handle


SHORT = {"first_byte": 0.2, "idle": 0.2}
PINGS = [(0.02, b": ping\n\n")] * 100
ENDLESS = [(0.03, delta("x"))] * 100
LATE = [
    ("headers, then nothing", [], SHORT, None, "first_byte", 0.2),
    ("three chunks, then silence", [(0.0, delta("x"))] * 3, SHORT, None, "idle", 0.2),
    ("only heartbeats", PINGS, SHORT, None, "first_byte", 0.2),
    ("a chunk, then only heartbeats", [(0.0, delta("x")), *PINGS], SHORT, None, "idle", 0.2),
    ("chunks for ever, total limit", ENDLESS, {**SHORT, "total": 0.4}, None, "total", 0.4),
    ("chunks for ever, the call's limit", ENDLESS, SHORT, 0.4, "timeout", 0.4),
]


async def _call(client: AsyncClient, kind: str, profile: ModelProfile, seconds: float | None) -> None:
    if kind == "stream":
        await client.stream(profile, "Hello", timeout=seconds).wait()
    else:
        await client.complete(profile, "Hello", timeout=seconds)


def _sync_call(client: Client, kind: str, profile: ModelProfile, seconds: float | None) -> None:
    if kind == "stream":
        list(client.stream(profile, "Hello", timeout=seconds))
    else:
        client.complete(profile, "Hello", timeout=seconds)


@pytest.mark.parametrize("kind", ["stream", "complete"])
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize(
    ("script", "limits", "seconds", "says", "after"),
    [case[1:] for case in LATE],
    ids=[case[0] for case in LATE],
)
async def test_a_late_answer_ends_in_a_timeout(
    client: AsyncClient,
    sync_client: Client,
    kind: str,
    sync: bool,
    script: list[tuple[float, bytes]],
    limits: dict[str, float],
    seconds: float | None,
    says: str,
    after: float,
) -> None:
    """E06 (a), (c), (d), (e)"""
    async with serving(_timed(script)) as port:
        profile = profile_at(port, timeouts=limits)
        began = time.monotonic()
        in_thread = asyncio.to_thread(_sync_call, sync_client, kind, profile, seconds)
        call = in_thread if sync else _call(client, kind, profile, seconds)
        with pytest.raises(errors.TimeoutError, match=says):
            await call
        in_thread.close()
        assert after - 0.02 <= time.monotonic() - began < after + 0.3


async def test_a_long_answer_within_the_gap_limit_completes(client: AsyncClient) -> None:
    """E06 (b)"""
    script = [(0.05, delta("x"))] * 12 + [(0.0, FINISH)]
    async with serving(_timed(script)) as port:
        answer = await client.stream(profile_at(port, timeouts={"idle": 0.3}), "Hello").wait()
    assert answer.text == "x" * 12


async def test_a_slow_consumer_is_no_silent_server(client: AsyncClient) -> None:
    """The idle limit is the server's, not that of whoever reads."""
    script = [(0.0, delta("a")), (0.0, delta("b") + FINISH)]
    async with (
        serving(_timed(script)) as port,
        client.stream(profile_at(port, timeouts=SHORT), "Hello") as stream,
    ):
        await anext(stream)
        await asyncio.sleep(0.3)
        assert (await stream.wait()).text == "ab"


async def test_a_finished_answer_does_not_wait_for_a_server_that_keeps_the_connection(
    client: AsyncClient,
) -> None:
    async with serving(_timed([(0.0, delta("a") + FINISH)])) as port:
        began = time.monotonic()
        assert (await client.stream(profile_at(port), "Hello").wait()).text == "a"
    assert time.monotonic() - began < 0.5


async def test_a_timeout_is_also_the_builtin_one(client: AsyncClient, fault: FaultOf) -> None:
    with pytest.raises(TimeoutError):
        await client.complete(fault("hang").profile(), "Hello", timeout=0.05)


async def test_connecting_has_a_limit_of_its_own(settings: Settings) -> None:
    """A listening socket whose queue is full lets nobody in."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        profile = profile_at(port, timeouts={"connect": 0.1})
        async with AsyncClient(settings, interceptors=[]) as client:
            with pytest.raises(errors.ConnectTimeoutError, match=r"timeouts\.connect"):
                await client.complete(profile, "Hello")
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize("kind", ["complete", "stream"])
async def test_an_interruption_before_the_first_chunk_has_a_partial_too(
    settings: Settings, kind: str
) -> None:
    nothing = answering(STREAM_HEAD + b": nothing else\n\n")
    async with serving(nothing) as port, AsyncClient(settings, interceptors=[]) as client:
        with pytest.raises(StreamInterruptedError) as raised:
            await _call(client, kind, profile_at(port), None)
    assert raised.value.partial is not None
    assert raised.value.partial.text == ""
