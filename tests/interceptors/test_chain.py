"""What interceptors may do, and in which order they stand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lmclient import (
    AsyncClient,
    AsyncCompletionStream,
    CallNext,
    Chunk,
    Completion,
    CompletionRequest,
    Hooks,
    LMClientError,
    ModelProfile,
    RetryInterceptor,
    Settings,
    StreamInterruptedError,
)
from lmclient.interceptors.base import Forwarding, Interceptor
from lmclient.testing import FaultProvider
from lmclient.testing.fault import TEXT


@pytest.fixture
def profile(fault_provider: FaultProvider, request: pytest.FixtureRequest) -> ModelProfile:
    key = request.node.name.replace("[", "-").replace("]", "")
    return ModelProfile(provider="openai-chat", model="mock", url=fault_provider.url("ok", key=key))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, profiles_dir=tmp_path)


@pytest.fixture(params=["complete", "stream"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def ask(client: AsyncClient, profile: ModelProfile, kind: str) -> Completion:
    if kind == "complete":
        return await client.complete(profile, "Hello")
    return await client.stream(profile, "Hello").wait()


async def test_the_first_interceptor_is_the_outermost(
    settings: Settings, profile: ModelProfile, kind: str
) -> None:
    order: list[str] = []

    class Noting(Hooks):
        def __init__(self, name: str) -> None:
            self.name = name

        async def before(self, request: CompletionRequest) -> CompletionRequest:
            order.append(f"before {self.name}")
            return request

        async def after(self, request: CompletionRequest, completion: Completion) -> Completion:
            order.append(f"after {self.name}")
            return completion

    async with AsyncClient(settings, interceptors=[Noting("a"), Noting("b")]) as client:
        await ask(client, profile, kind)
    assert order == ["before a", "before b", "after b", "after a"]


async def test_before_changes_the_request(settings: Settings, profile: ModelProfile, kind: str) -> None:
    class Renaming(Hooks):
        async def before(self, request: CompletionRequest) -> CompletionRequest:
            other = request.profile.model_copy(update={"model": "other"})
            return msgspec.structs.replace(request, profile=other)

    async with AsyncClient(settings, interceptors=[Renaming()]) as client:
        assert (await ask(client, profile, kind)).model == "other"


async def test_after_changes_the_completion(settings: Settings, profile: ModelProfile, kind: str) -> None:
    class Shouting(Hooks):
        async def after(self, request: CompletionRequest, completion: Completion) -> Completion:
            return msgspec.structs.replace(completion, text=completion.text.upper())

    async with AsyncClient(settings, interceptors=[Shouting()]) as client:
        assert (await ask(client, profile, kind)).text == TEXT.upper()


async def test_an_error_in_after_fails_the_call(settings: Settings, profile: ModelProfile, kind: str) -> None:
    class Refusing(Hooks):
        async def after(self, request: CompletionRequest, completion: Completion) -> Completion:
            raise LMClientError("not this one")

    async with AsyncClient(settings, interceptors=[Refusing()]) as client:
        with pytest.raises(LMClientError, match="not this one"):
            await ask(client, profile, kind)


async def test_an_interceptor_answers_without_any_provider(settings: Settings, kind: str) -> None:
    async def canned(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        return AsyncCompletionStream.of(Completion(text="canned"), [Chunk("canned")])

    nowhere = ModelProfile(provider="openai-chat", model="mock", url="http://127.0.0.1:9")
    async with AsyncClient(settings, interceptors=[canned]) as client:
        assert (await ask(client, nowhere, kind)).text == "canned"


async def test_an_interceptor_may_call_on_several_times(
    settings: Settings, profile: ModelProfile, kind: str
) -> None:
    async def twice(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        await (await call_next(request)).wait()
        return await call_next(request)

    async with AsyncClient(settings, interceptors=[twice]) as client:
        assert (await ask(client, profile, kind)).requests == 2


class Counting:
    """A source that wraps another one."""

    def __init__(self, stream: AsyncCompletionStream, seen: list[str]) -> None:
        self._stream = stream
        self._seen = seen

    async def next_batch(self) -> Any:
        batch = await self._stream.next_batch()
        self._seen += [chunk.text for chunk in batch]
        return batch

    def result(self) -> Completion:
        return self._stream.result()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def abort(self) -> None:
        self._stream.abort()


async def test_an_interceptor_may_wrap_the_stream(
    settings: Settings, profile: ModelProfile, kind: str
) -> None:
    seen: list[str] = []

    async def wrap(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        return AsyncCompletionStream(Counting(await call_next(request), seen))

    async with AsyncClient(settings, interceptors=[wrap]) as client:
        assert (await ask(client, profile, kind)).text == TEXT
    assert "".join(seen) == (TEXT if kind == "stream" else "")


@pytest.fixture
async def ended(settings: Settings, profile: ModelProfile) -> AsyncIterator[list[Any]]:
    """What the end of a stream that is left after one chunk tells an interceptor."""
    ends: list[Any] = []

    async def watch(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        stream = await call_next(request)

        async def end(completion: Completion, error: BaseException | None) -> None:
            ends.append((completion, error))

        stream.on_end(end)
        return stream

    async with AsyncClient(settings, interceptors=[watch]) as client:
        async with client.stream(profile, "Hello") as stream:
            async for chunk in stream:
                if chunk.text:
                    break
        yield ends


async def test_the_end_of_a_stream_left_early_is_told_once(ended: list[Any]) -> None:
    assert len(ended) == 1


async def test_the_end_of_a_stream_left_early_has_what_arrived(ended: list[Any]) -> None:
    completion, error = ended[0]
    assert TEXT.startswith(completion.text)
    assert completion.text
    assert type(error).__name__ == "CancelledError"


class Watching:
    """Notes how the streams that pass it end."""

    def __init__(self) -> None:
        self.ended: list[BaseException | None] = []

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        stream = await call_next(request)

        async def end(completion: Completion, error: BaseException | None) -> None:
            self.ended.append(error)

        stream.on_end(end)
        return stream


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_stream_that_an_interceptor_fails_on_is_closed_at_once(
    settings: Settings, fault_provider: FaultProvider, keeps: bool
) -> None:
    async def guard(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        stream = await call_next(request)
        if not keeps:
            del stream
        raise ValueError("blocked")

    asked = ModelProfile(provider="openai-chat", model="mock", url=fault_provider.url("slow_stream"))
    watching = Watching()
    async with AsyncClient(settings, interceptors=[guard, watching]) as client:
        with pytest.raises(ValueError, match="blocked"):
            await client.stream(asked, "Hello").wait()
        assert len(watching.ended) == 1


async def test_a_stream_that_an_interceptor_answers_in_place_of_is_closed_at_once(
    settings: Settings, fault_provider: FaultProvider
) -> None:
    async def guard(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        await call_next(request)
        return AsyncCompletionStream.of(Completion(text="No."))

    asked = ModelProfile(provider="openai-chat", model="mock", url=fault_provider.url("slow_stream"))
    watching = Watching()
    async with AsyncClient(settings, interceptors=[guard, watching]) as client:
        assert (await client.stream(asked, "Hello").wait()).text == "No."
        assert [type(error) for error in watching.ended] == [asyncio.CancelledError]


async def test_a_stream_that_a_subclass_of_ours_fails_on_is_closed_at_once(
    settings: Settings, fault_provider: FaultProvider
) -> None:
    ended: list[BaseException | None] = []

    class Guard(RetryInterceptor):
        async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
            stream = await super().__call__(request, call_next)

            async def end(completion: Completion, error: BaseException | None) -> None:
                ended.append(error)

            stream.on_end(end)
            raise ValueError("blocked")

    asked = ModelProfile(provider="openai-chat", model="mock", url=fault_provider.url("slow_stream"))
    async with AsyncClient(settings, interceptors=[Guard()]) as client:
        with pytest.raises(ValueError, match="blocked"):
            await client.stream(asked, "Hello").wait()
        assert len(ended) == 1


async def test_the_end_is_told_once_also_if_one_task_reads_and_others_close(
    settings: Settings, fault_provider: FaultProvider
) -> None:
    ended: list[BaseException | None] = []

    async def end(completion: Completion, error: BaseException | None) -> None:
        await asyncio.sleep(0)
        ended.append(error)

    asked = ModelProfile(provider="openai-chat", model="mock", url=fault_provider.url("hang_mid_stream"))
    async with AsyncClient(settings, interceptors=[]) as client:
        stream = client.stream(asked, "Hello")
        stream.on_end(end)
        await anext(stream)
        reading = asyncio.create_task(stream.wait())
        await asyncio.sleep(0)
        await asyncio.gather(stream.aclose(), stream.aclose(), reading, return_exceptions=True)
    assert len(ended) == 1


async def waits(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
    stream = await call_next(request)
    await stream.wait()
    return stream


async def iterates(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
    stream = await call_next(request)
    async for _ in stream:
        pass
    return stream


async def leaves(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
    stream = await call_next(request)
    await stream.next_batch()
    await stream.aclose()
    return stream


class Forwards(Forwarding):
    """Promises to hand on what it is given, and reads it."""

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        return await waits(request, call_next)


@pytest.mark.parametrize("reads", [waits, iterates, leaves, Forwards()])
async def test_those_outside_see_the_end_of_a_stream_that_was_read_inside_once(
    settings: Settings, profile: ModelProfile, kind: str, reads: Interceptor
) -> None:
    outer, inner = Watching(), Watching()
    async with AsyncClient(settings, interceptors=[outer, reads, inner]) as client:
        await ask(client, profile, kind)
    assert len(inner.ended) == 1
    assert [type(error) for error in outer.ended] == [type(error) for error in inner.ended]


async def test_those_outside_see_the_end_of_a_stream_that_failed_inside(
    settings: Settings, fault_provider: FaultProvider, kind: str
) -> None:
    async def bears(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        stream = await call_next(msgspec.structs.replace(request, stream=True))
        with contextlib.suppress(StreamInterruptedError):
            await stream.wait()
        return stream

    asked = ModelProfile(provider="openai-chat", model="mock", url=fault_provider.url("reset_mid_stream"))
    watching = Watching()
    async with AsyncClient(settings, interceptors=[watching, bears]) as client:
        await ask(client, asked, kind)
    assert [type(error) for error in watching.ended] == [StreamInterruptedError]


@pytest.mark.parametrize("chain", [[waits], [iterates], [waits, Hooks()], [waits, iterates]])
async def test_a_reader_gets_the_text_of_an_answer_that_was_read_inside_once(
    settings: Settings, profile: ModelProfile, chain: list[Interceptor]
) -> None:
    async with (
        AsyncClient(settings, interceptors=[Hooks(), *chain]) as client,
        client.stream(profile, "Hello") as stream,
    ):
        assert "".join([chunk.text async for chunk in stream]) == TEXT


async def test_those_outside_see_the_end_also_if_the_reader_leaves_what_was_read_inside(
    settings: Settings, profile: ModelProfile
) -> None:
    watching = Watching()
    async with AsyncClient(settings, interceptors=[watching, waits]) as client:
        async with client.stream(profile, "Hello") as stream:
            await anext(stream)
        assert watching.ended == [None]


async def test_those_outside_see_the_end_also_if_one_of_them_fails_on_what_was_read_inside(
    settings: Settings, profile: ModelProfile, kind: str
) -> None:
    async def refuses(request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        await call_next(request)
        raise LMClientError("not this one")

    watching = Watching()
    async with AsyncClient(settings, interceptors=[refuses, watching, waits]) as client:
        with pytest.raises(LMClientError, match="not this one"):
            await ask(client, profile, kind)
        assert watching.ended == [None]
