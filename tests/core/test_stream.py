"""Streams: batches, the end, callbacks, leaving early and being dropped."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import pytest

from lmclient.core.completion import Chunk, Completion
from lmclient.core.stream import AsyncCompletionStream, EndCallback
from lmclient.errors import LMClientError, StreamInterruptedError

A, B, C = Chunk("a"), Chunk("b"), Chunk("c")


class Source:
    """Gives its batches one by one, then ends, raises or hangs."""

    def __init__(self, *batches: Sequence[Chunk], error: BaseException | None = None, hang: bool = False):
        self.batches = list(batches)
        self.error = error
        self.hang = hang
        self.text = ""
        self.closed = asyncio.Event()
        self.aborted = False
        self.close_error: Exception | None = None

    async def next_batch(self) -> Sequence[Chunk]:
        if self.batches:
            batch = self.batches.pop(0)
            self.text += "".join(chunk.text for chunk in batch)
            return batch
        if self.hang:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return ()

    def result(self) -> Completion:
        return Completion(text=self.text)

    async def aclose(self) -> None:
        self.closed.set()
        if self.close_error is not None:
            raise self.close_error

    def abort(self) -> None:
        self.aborted = True


class Ends:
    """Callbacks that note what they were called with."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, BaseException | None]] = []

    def note(self, name: str, *, text: str | None = None, error: BaseException | None = None) -> EndCallback:
        async def callback(completion: Completion, problem: BaseException | None) -> Completion | None:
            self.seen.append((name, completion.text, problem))
            if error is not None:
                raise error
            return None if text is None else Completion(text=text)

        return callback


async def test_iteration_gives_single_chunks_of_all_batches() -> None:
    assert [chunk async for chunk in AsyncCompletionStream(Source([A, B], [C]))] == [A, B, C]


async def test_a_batch_is_what_the_source_gave() -> None:
    stream = AsyncCompletionStream(Source([A, B], [C]))
    assert [list(await stream.next_batch()) for _ in range(3)] == [[A, B], [C], []]


async def test_a_batch_after_a_single_chunk_is_the_rest_of_its_batch() -> None:
    stream = AsyncCompletionStream(Source([A, B, C]))
    await anext(stream)
    assert list(await stream.next_batch()) == [B, C]
    await stream.aclose()


async def test_after_the_end_there_are_no_more_batches() -> None:
    stream = AsyncCompletionStream(Source([A]))
    await stream.wait()
    assert await stream.next_batch() == ()


async def test_wait_reads_the_rest_and_returns_the_completion() -> None:
    stream = AsyncCompletionStream(Source([A, B], [C]))
    await anext(stream)
    assert await stream.wait() == Completion(text="abc")


async def test_the_completion_is_refused_while_the_stream_runs() -> None:
    stream = AsyncCompletionStream(Source([A]))
    await anext(stream)
    with pytest.raises(LMClientError, match="not ended"):
        _ = stream.completion
    await stream.aclose()


async def test_a_stream_of_a_whole_answer_gives_its_chunks_and_completion() -> None:
    stream = AsyncCompletionStream.of(Completion(text="abc"), [A, B, C])
    assert [chunk async for chunk in stream] == [A, B, C]
    assert stream.completion.text == "abc"


async def test_a_source_is_started_when_the_block_is_entered() -> None:
    started: list[Source] = []

    async def start() -> Source:
        started.append(Source([A]))
        return started[-1]

    stream = AsyncCompletionStream(start)
    assert not started
    async with stream:
        assert await stream.wait() == Completion(text="a")
    assert len(started) == 1


async def test_a_stream_closed_before_its_start_cannot_be_read() -> None:
    async def start() -> Source:
        raise AssertionError("started")

    stream = AsyncCompletionStream(start)
    await stream.aclose()
    with pytest.raises(LMClientError, match="closed"):
        await stream.next_batch()


async def test_callbacks_run_in_order_and_replace_the_completion_for_later_ones() -> None:
    ends, stream = Ends(), AsyncCompletionStream(Source([A]))
    stream.on_end(ends.note("first", text="x"))
    stream.on_end(ends.note("second"))
    assert (await stream.wait()).text == "x"
    assert ends.seen == [("first", "a", None), ("second", "x", None)]


async def test_callbacks_run_once_even_if_the_stream_is_closed_again() -> None:
    ends, stream = Ends(), AsyncCompletionStream(Source([A]))
    stream.on_end(ends.note("only"))
    async with stream:
        await stream.wait()
    await stream.aclose()
    assert len(ends.seen) == 1


async def test_a_failing_callback_fails_the_stream_and_later_callbacks_know() -> None:
    problem, ends = ValueError("no"), Ends()
    stream = AsyncCompletionStream(Source([A]))
    stream.on_end(ends.note("first", error=problem))
    stream.on_end(ends.note("second"))
    with pytest.raises(ValueError, match="no"):
        await stream.wait()
    assert ends.seen == [("first", "a", None), ("second", "a", problem)]


async def test_an_error_ends_the_stream_with_what_had_arrived() -> None:
    error, ends = StreamInterruptedError("cut"), Ends()
    source = Source([A], error=error)
    stream = AsyncCompletionStream(source)
    stream.on_end(ends.note("end"))
    with pytest.raises(StreamInterruptedError) as raised:
        await stream.wait()
    assert raised.value.partial == stream.completion == Completion(text="a")
    assert ends.seen == [("end", "a", error)]
    assert source.closed.is_set()


async def test_callbacks_run_even_if_closing_the_source_fails() -> None:
    ends, source = Ends(), Source([A], error=StreamInterruptedError("cut"))
    source.close_error = OSError("gone")
    stream = AsyncCompletionStream(source)
    stream.on_end(ends.note("end"))
    with pytest.raises(OSError, match="gone"):
        await stream.wait()
    assert [name for name, _, _ in ends.seen] == ["end"]


async def test_leaving_early_closes_the_source_and_keeps_the_part() -> None:
    ends, source = Ends(), Source([A, B], [C])
    async with AsyncCompletionStream(source) as stream:
        stream.on_end(ends.note("end"))
        await anext(stream)
    assert source.closed.is_set()
    assert stream.completion.text == "ab"
    assert isinstance(ends.seen[0][2], asyncio.CancelledError)


async def test_a_left_stream_has_no_more_chunks() -> None:
    stream = AsyncCompletionStream(Source([A, B], [C]))
    await anext(stream)
    await stream.aclose()
    assert [chunk async for chunk in stream] == []


async def test_an_error_in_the_block_closes_the_source() -> None:
    source = Source([A], hang=True)

    async def fail() -> None:
        async with AsyncCompletionStream(source) as stream:
            await anext(stream)
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert source.closed.is_set()


async def test_a_cancelled_reader_closes_the_source_and_runs_the_callbacks() -> None:
    ends, source = Ends(), Source([A], hang=True)
    stream = AsyncCompletionStream(source)
    stream.on_end(ends.note("end"))
    await anext(stream)
    reader = asyncio.create_task(stream.wait())
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert source.closed.is_set()
    assert isinstance(ends.seen[0][2], asyncio.CancelledError)


@pytest.mark.parametrize("lazy", [True, False])
async def test_a_dropped_stream_warns_closes_its_source_and_runs_the_callbacks(lazy: bool) -> None:
    ends, source = Ends(), Source([A], hang=True)

    async def start() -> Source:
        return source

    stream = AsyncCompletionStream(start if lazy else source)
    stream.on_end(ends.note("end"))
    await anext(stream)
    streams = [stream]
    del stream
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    await asyncio.wait_for(source.closed.wait(), 5)
    assert [name for name, _, _ in ends.seen] == ["end"]


def test_a_stream_dropped_without_its_loop_is_aborted() -> None:
    source = Source([A])

    async def read() -> AsyncCompletionStream:
        stream = AsyncCompletionStream(source)
        await anext(stream)
        return stream

    streams = [asyncio.run(read())]
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    assert source.aborted


async def test_a_stream_that_ended_or_never_began_is_dropped_in_silence() -> None:
    async def start() -> Source:
        raise AssertionError("started")

    await AsyncCompletionStream(Source([A])).wait()
    AsyncCompletionStream(start)
    gc.collect()


async def test_abort_frees_the_source_without_waiting() -> None:
    source = Source([A], hang=True)
    stream = AsyncCompletionStream(source)
    await anext(stream)
    stream.abort()
    assert source.aborted
    assert stream.completion.text == "a"


async def test_a_callback_that_comes_after_the_end_runs_when_the_stream_is_read_again() -> None:
    ends, stream = Ends(), AsyncCompletionStream(Source([A]))
    await stream.wait()
    stream.on_end(ends.note("late", text="x"))
    assert ends.seen == []
    assert (await stream.wait()).text == "x"
    await stream.aclose()
    assert ends.seen == [("late", "a", None)]


async def test_a_callback_that_comes_after_the_end_runs_when_the_stream_is_closed() -> None:
    ends, stream = Ends(), AsyncCompletionStream(Source([A]))
    await stream.wait()
    stream.on_end(ends.note("late"))
    await stream.aclose()
    assert ends.seen == [("late", "a", None)]


async def test_a_callback_that_comes_after_an_error_is_told_of_it() -> None:
    error, ends = StreamInterruptedError("cut"), Ends()
    stream = AsyncCompletionStream(Source([A], error=error))
    with pytest.raises(StreamInterruptedError):
        await stream.wait()
    stream.on_end(ends.note("late"))
    await stream.aclose()
    assert ends.seen == [("late", "a", error)]


async def test_a_callback_that_comes_after_the_stream_was_left_is_told_so() -> None:
    ends, stream = Ends(), AsyncCompletionStream(Source([A], [B]))
    await anext(stream)
    await stream.aclose()
    stream.on_end(ends.note("late"))
    assert list(await stream.next_batch()) == []
    assert [type(error) for _, _, error in ends.seen] == [asyncio.CancelledError]


async def test_callbacks_do_not_overtake_one_that_still_runs() -> None:
    order: list[str] = []
    begun, going_on = asyncio.Event(), asyncio.Event()

    async def slow(completion: Completion, error: BaseException | None) -> None:
        begun.set()
        await going_on.wait()
        order.append("slow")

    async def late(completion: Completion, error: BaseException | None) -> None:
        order.append("late")

    stream = AsyncCompletionStream(Source([A]))
    stream.on_end(slow)
    reading = asyncio.create_task(stream.wait())
    await begun.wait()
    stream.on_end(late)
    await stream.aclose()
    going_on.set()
    await reading
    assert order == ["slow", "late"]
