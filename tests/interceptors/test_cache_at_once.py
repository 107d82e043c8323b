"""Equal calls at the same time: one is made, and what becomes of the others when it fails."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lmclient import AsyncCompletionStream, CacheInterceptor, Chunk, Completion, CompletionRequest
from lmclient.errors import BadRequestError, BudgetExceededError, RateLimitError, ServerError, TimeoutError
from lmclient.interceptors.base import chain
from lmclient.interceptors.cache_flights import Flight, Flights
from lmclient.settings import CacheSettings

from .model_in_test import ANSWER, Model, change, profile, request
from .virtual_time import run

MANY = 20


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[CacheInterceptor]:
    def fingerprint(asked: CompletionRequest) -> str:
        return repr(asked.conversation.turns)

    interceptor = CacheInterceptor(CacheSettings(enabled=True, dir=tmp_path / "cache"), fingerprint)
    yield interceptor
    await interceptor.aclose()


@pytest.fixture
def model() -> Model:
    """A model whose answers wait for the test."""
    waiting = Model()
    waiting.gate.clear()
    return waiting


async def complete(cache: CacheInterceptor, model: Model, asked: CompletionRequest) -> Completion:
    stream = await chain([cache], model)(asked)
    return await stream.wait()


def start(cache: CacheInterceptor, model: Model, count: int, **values: Any) -> list[asyncio.Task[Completion]]:
    return [asyncio.create_task(complete(cache, model, request(**values))) for _ in range(count)]


async def reached(model: Model, calls: int = 1) -> None:
    """Returns after so many more calls of the model; everybody who can wait then waits."""
    async with asyncio.timeout(5):
        for _ in range(calls):
            await model.called.acquire()
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
async def test_equal_calls_at_once_make_one_request(cache, model, streamed):
    tasks = start(cache, model, MANY, stream=streamed)
    await reached(model)
    model.gate.set()
    answers = await asyncio.gather(*tasks)
    assert model.calls == 1
    assert {answer.text for answer in answers} == {ANSWER.text}
    assert sum(answer.cached for answer in answers) == MANY - 1
    assert sum(answer.cost for answer in answers) == ANSWER.cost


async def test_what_the_first_does_to_its_answer_is_its_own(cache, model):
    model.answer = msgspec.json.decode(msgspec.json.encode(ANSWER), type=Completion)

    async def ask_and_change() -> None:
        change(await complete(cache, model, request()))

    first = asyncio.create_task(ask_and_change())
    (other,) = start(cache, model, 1)
    await reached(model)
    model.gate.set()
    await first
    answer = await other
    assert answer.tool_calls == ANSWER.tool_calls
    assert answer.usage == ANSWER.usage
    assert answer.provider_items == ANSWER.provider_items
    assert answer.metadata["logprobs"] == ANSWER.metadata["logprobs"]


async def test_different_calls_at_once_do_not_wait_for_each_other(cache, model):
    tasks = [asyncio.create_task(complete(cache, model, request(f"{number}?"))) for number in range(3)]
    await reached(model, 3)
    model.gate.set()
    await asyncio.gather(*tasks)


async def test_another_takes_over_when_the_first_is_cancelled(cache, model):
    first, *others = start(cache, model, MANY)
    await reached(model)
    first.cancel()
    await reached(model)
    model.gate.set()
    assert len(await asyncio.gather(*others)) == MANY - 1
    assert model.calls == 2


async def test_a_waiting_call_that_is_cancelled_disturbs_nobody(cache, model):
    tasks = start(cache, model, 3)
    await reached(model)
    tasks[1].cancel()
    model.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Completion, asyncio.CancelledError, Completion]
    assert model.calls == 1


async def test_another_takes_over_a_stream_that_is_left(cache, model):
    model.gate.set()
    async with await chain([cache], model)(request(stream=True)) as stream:
        await anext(stream)
        (waiting,) = start(cache, model, 1)
        await asyncio.sleep(0)
    answer = await waiting
    assert (answer.cached, model.calls) == (False, 2)


async def test_another_takes_over_a_stream_that_nobody_reads(cache, model):
    model.gate.set()
    asked = request(stream=True, profile=profile(timeouts={"idle": 0.05}))
    async with await chain([cache], model)(asked) as stream:
        answer = await complete(cache, model, asked)
        await stream.wait()
    assert (answer.cached, model.calls) == (False, 2)


async def test_a_providers_error_meets_all_equal_calls(cache, model):
    model.answer = ServerError("down", status=503)
    tasks = start(cache, model, MANY)
    await reached(model)
    model.gate.set()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert {(type(error), str(error), error.status) for error in errors} == {(ServerError, "down", 503)}
    assert len({id(error) for error in errors}) == MANY
    assert model.calls == 1


async def test_an_error_with_another_profiles_key_is_not_mine(cache, model):
    model.answer = ServerError("your account is closed")
    (first,) = start(cache, model, 1)
    await reached(model)
    (other,) = start(cache, model, 1, profile=profile(api_key="sk-another-key"))
    await asyncio.sleep(0)
    model.gate.set()
    await asyncio.gather(first, other, return_exceptions=True)
    assert model.calls == 2


@pytest.mark.parametrize("error", [BudgetExceededError("mine"), TimeoutError("mine"), RuntimeError("mine")])
async def test_an_error_that_is_the_callers_own_makes_another_take_over(cache, model, error):
    model.answer = error
    first, other = start(cache, model, 2)
    await reached(model)
    model.gate.set()
    model.answer = error
    await asyncio.gather(first, other, return_exceptions=True)
    assert model.calls == 2


async def test_waiting_ends_with_the_calls_own_time(cache, model):
    (first,) = start(cache, model, 1)
    await reached(model)
    with pytest.raises(TimeoutError, match="equal call"):
        await complete(cache, model, request(deadline=time.monotonic() + 0.02))
    model.gate.set()
    assert (await first).text == ANSWER.text


LATER = {"a minute later": 60.0, "at no time": None}


@pytest.mark.parametrize("seconds", LATER.values(), ids=LATER)
async def test_a_call_with_more_time_is_not_failed_by_one_with_less(cache, model, seconds):
    model.answer = RateLimitError("later", status=429, retry_after=1)
    now = time.monotonic()
    (hasty,) = start(cache, model, 1, deadline=now + 5)
    await reached(model)
    (patient,) = start(cache, model, 1, deadline=None if seconds is None else now + seconds)
    await asyncio.sleep(0)
    model.gate.set()
    with pytest.raises(RateLimitError):
        await hasty
    model.answer = ANSWER
    assert (await patient).text == ANSWER.text


async def test_an_error_for_which_there_was_time_meets_all_equal_calls(cache, model):
    """Else each of them would try all over again, one after the other, while a provider is down."""
    model.answer = ServerError("down", status=503)
    now = time.monotonic()
    tasks = [*start(cache, model, 1, deadline=now + 600), *start(cache, model, 1, deadline=now + 610)]
    await reached(model)
    model.gate.set()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert ([type(error) for error in errors], model.calls) == ([ServerError] * 2, 1)


async def test_an_error_that_no_time_can_cure_meets_all_equal_calls(cache, model):
    model.answer = BadRequestError("wrong", status=400)
    now = time.monotonic()
    tasks = [*start(cache, model, 1, deadline=now + 5), *start(cache, model, 1, deadline=now + 60)]
    await reached(model)
    model.gate.set()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert ([type(error) for error in errors], model.calls) == ([BadRequestError] * 2, 1)


class Growing:
    """The source of a stream of which more and more has been read."""

    text = ""

    async def next_batch(self) -> Sequence[Chunk]:
        raise NotImplementedError

    def result(self) -> Completion:
        return Completion(text=self.text)

    async def aclose(self) -> None:
        pass

    def abort(self) -> None:
        pass


async def is_taken_over(minutes: Sequence[str]) -> bool:
    """Whether an equal call gave a stream up, of which so much was read in each of these minutes."""
    flights, asked = Flights(), request(stream=True, profile=profile(timeouts={"idle": 61}))
    flight = await flights.join("key", asked)
    assert isinstance(flight, Flight)
    source = Growing()
    async with AsyncCompletionStream(source) as stream:
        flight.stream = weakref.ref(stream) if any(minutes) else None
        waiting = asyncio.create_task(flights.join("key", asked))
        for text in minutes:
            await asyncio.sleep(60)
            source.text += text
        return waiting.done()


def test_a_stream_that_is_read_is_waited_for_however_long_it_takes():
    assert not run(is_taken_over("abcdefgh"))


def test_a_stream_that_has_not_begun_is_waited_for():
    assert not run(is_taken_over([""] * 8))


def test_a_stream_that_is_no_longer_read_is_taken_over():
    assert run(is_taken_over(["a", "b", "", "", ""]))


async def test_skipping_the_cache_waits_for_nobody(cache, model):
    tasks = start(cache, model, 2, skip_cache=True)
    await reached(model, 2)
    model.gate.set()
    await asyncio.gather(*tasks)
