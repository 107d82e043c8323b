"""The cache through its interceptor: what is kept, what a hit looks like, and what is no hit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lmclient import (
    AsyncCompletionStream,
    CacheInterceptor,
    Completion,
    CompletionRequest,
    FinishReason,
    Options,
    ToolCall,
)
from lmclient.errors import ContextOverflowError, ServerError, StreamInterruptedError
from lmclient.interceptors.base import chain
from lmclient.settings import CacheSettings

from .model_in_test import ANSWER, CALLS, Model, change, profile, request


def fingerprint(asked: CompletionRequest) -> str:
    url = (asked.profile.url, sorted(asked.profile.extra_query.items()))
    return repr((url, asked.profile.model, asked.conversation.turns, asked.options))


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[CacheInterceptor]:
    interceptor = CacheInterceptor(CacheSettings(enabled=True, dir=tmp_path / "cache"), fingerprint)
    yield interceptor
    await interceptor.aclose()


async def complete(cache: CacheInterceptor, model: Any, asked: CompletionRequest) -> Completion:
    stream = await chain([cache], model)(asked)
    return await stream.wait()


def expected(hit: Completion, category: str) -> Completion:
    """What a hit has to be."""
    return msgspec.structs.replace(
        ANSWER,
        cost=Decimal(0),
        cost_source="cache",
        cached=True,
        profile="first",
        category=category,
        duration=hit.duration,
        metadata={"logprobs": [-0.5], "saved_cost": "0.000123"},
    )


async def is_hit(cache: CacheInterceptor, asked: CompletionRequest) -> bool:
    return (await complete(cache, Model(), asked)).cached


@pytest.mark.parametrize("first", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("second", [False, True], ids=["plain", "stream"])
async def test_the_same_request_is_answered_once(cache, first, second):
    model = Model()
    await complete(cache, model, request(stream=first))
    answer = await complete(cache, model, request(stream=second))
    assert (model.calls, answer.cached, cache.hits, cache.misses) == (1, True, 1, 1)


async def test_a_hit_is_the_answer_and_costs_nothing(cache):
    await complete(cache, Model(), request())
    hit = await complete(cache, Model(), request(category="xl"))
    assert hit == expected(hit, "xl")


async def test_what_a_caller_does_to_a_hit_is_not_in_the_next(cache):
    await complete(cache, Model(), request())
    first = await complete(cache, Model(), request())
    change(first)
    again = await complete(cache, Model(), request())
    assert again == expected(again, "m")


async def test_a_hit_without_a_price_has_no_saving(cache):
    model = Model(msgspec.structs.replace(ANSWER, cost=None, cost_source=None))
    await complete(cache, model, request())
    assert "saved_cost" not in (await complete(cache, model, request())).metadata


async def test_a_hit_streams_reasoning_then_text_then_calls(cache):
    await complete(cache, Model(), request())
    stream = await chain([cache], Model())(request(stream=True))
    chunks = [chunk async for chunk in stream]
    kinds = ["reasoning" if c.reasoning else "text" if c.text else "calls" for c in chunks]
    assert kinds == ["reasoning", "text", "text", "calls"]
    assert "".join(chunk.text for chunk in chunks) == ANSWER.text
    assert chunks[-1].tool_calls == CALLS
    assert stream.completion.time_to_first_token is not None


async def test_times_of_a_hit_are_its_own(cache):
    await complete(cache, Model(msgspec.structs.replace(ANSWER, duration=99.0)), request())
    hit = await complete(cache, Model(), request())
    assert 0 < hit.duration < 9
    assert hit.time_to_first_token is None


NOT_GOOD = {
    "filtered": {"finish_reason": FinishReason.CONTENT_FILTER},
    "failed": {"finish_reason": FinishReason.ERROR},
    "unknown": {"finish_reason": FinishReason.UNKNOWN},
    "cut": {"finish_reason": FinishReason.LENGTH},
    "empty": {"text": "", "tool_calls": ()},
    "bad arguments": {"tool_calls": (ToolCall("1", "f", None, "{"),)},
}


@pytest.mark.parametrize("change", NOT_GOOD.values(), ids=NOT_GOOD)
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
async def test_an_answer_that_is_not_good_is_asked_for_again(cache, change, streamed):
    model = Model(msgspec.structs.replace(ANSWER, **change))
    for _ in range(2):
        assert not (await complete(cache, model, request(stream=streamed))).cached
    assert model.calls == 2


async def test_an_error_is_not_kept(cache):
    with pytest.raises(ServerError):
        await complete(cache, Model(ServerError("down")), request())
    assert not await is_hit(cache, request())


async def test_a_stream_that_was_left_is_not_kept(cache):
    async with await chain([cache], Model())(request(stream=True)) as stream:
        await anext(stream)
    assert not await is_hit(cache, request())


async def test_a_stream_that_broke_is_not_kept(cache):
    class Broken:
        async def next_batch(self):
            raise StreamInterruptedError("broken")

        def result(self):
            return ANSWER

        async def aclose(self):
            pass

        def abort(self):
            pass

    async def broken(asked: CompletionRequest) -> AsyncCompletionStream:
        return AsyncCompletionStream(Broken())

    with pytest.raises(StreamInterruptedError):
        await complete(cache, broken, request(stream=True))
    assert not await is_hit(cache, request())


async def test_skipping_the_cache_asks_again_and_keeps_the_new_answer(cache):
    await complete(cache, Model(), request())
    newer = Model(msgspec.structs.replace(ANSWER, text="The Aare."))
    assert (await complete(cache, newer, request(skip_cache=True))).cached is False
    assert (await complete(cache, Model(), request())).text == "The Aare."


SAME = {
    "tags": {"tags": {"user": "42"}},
    "category": {"category": "cold"},
    "deadline": {"deadline": 1e12},
    "key": {"profile": profile(api_key="sk-another-key")},
    "key in the query": {"profile": profile(extra_query={"api_key": "sk-another-key"})},
    "secret header": {"profile": profile(headers={"x-api-key": "sk-another-key"})},
    "timeouts": {"profile": profile(timeouts={"total": 5})},
    "limits": {"profile": profile(limits={"concurrency": 5})},
    "prices": {"profile": profile(cost={"input": "1"})},
    "name": {"profile": profile("other")},
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
async def test_what_cannot_change_the_answer_is_not_in_the_key(cache, change):
    await complete(cache, Model(), request())
    assert await is_hit(cache, request(**change))


OTHER = {
    "url": {"profile": profile(url="http://other/v1")},
    "model": {"profile": profile(model="m-2")},
    "prompt format": {"profile": profile(prompt_format="chatml")},
    "tokenizer": {"profile": profile(tokenizer="tiktoken")},
    "reasoning tags": {"profile": profile(reasoning_tags="think")},
    "overflow": {"profile": profile(on_overflow="drop-oldest")},
    "header": {"profile": profile(headers={"anthropic-beta": "context-1m"})},
    "query": {"profile": profile(extra_query={"route": "b"})},
    "text": {"conversation": request("Name a lake.").conversation},
}


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
async def test_what_can_change_the_answer_is_in_the_key(cache, change):
    await complete(cache, Model(), request())
    assert not await is_hit(cache, request(**change))


async def test_a_hit_names_the_profile_that_asked(cache):
    await complete(cache, Model(), request())
    assert (await complete(cache, Model(), request(profile=profile("other")))).profile == "other"


async def test_what_a_fallback_answered_is_kept_as_its_own(cache):
    other = profile("second", url="http://second/v1")
    model = Model(msgspec.structs.replace(ANSWER, profile="second"))
    await complete(cache, model, request(fallbacks=(other,)))
    assert await is_hit(cache, request(profile=other))
    assert not await is_hit(cache, request())


async def test_a_request_that_has_no_key_is_made(cache, monkeypatch):
    def cannot(asked: CompletionRequest) -> str:
        raise ContextOverflowError("too long")

    monkeypatch.setattr(cache, "_fingerprint", cannot)
    model = Model()
    for _ in range(2):
        assert not (await complete(cache, model, request())).cached
    assert model.calls == 2


async def test_a_provider_without_a_preview_has_no_keys(cache, monkeypatch):
    def cannot(asked: CompletionRequest) -> str:
        raise NotImplementedError

    monkeypatch.setattr(cache, "_fingerprint", cannot)
    assert not (await complete(cache, Model(), request())).cached


async def test_a_profile_that_leaves_the_model_to_its_server_is_always_asked(cache):
    model = Model()
    for _ in range(2):
        assert not (await complete(cache, model, request(profile=profile(model="")))).cached
    assert model.calls == 2


class River(msgspec.Struct):
    name: str


@pytest.mark.parametrize(
    ("text", "kept"), [('{"name": "Aare"}', True), ('{"name": 5}', False), ("The Aare.", False)]
)
async def test_an_answer_that_is_not_of_the_format_asked_for_is_not_kept(cache, text, kept):
    answer = msgspec.structs.replace(ANSWER, text=text, tool_calls=(), finish_reason=FinishReason.STOP)
    asked = request(options=Options(response_format=River))
    await complete(cache, Model(answer), asked)
    assert await is_hit(cache, asked) is kept


@pytest.mark.parametrize("key", ["sk-secret-0123", 'pass"word\\0123'], ids=["plain", "to be escaped"])
@pytest.mark.parametrize("in_json", [False, True], ids=["as text", "in JSON"])
async def test_an_answer_that_repeats_the_key_is_not_kept(cache, key, in_json):
    secret = profile(api_key=key)
    text = msgspec.json.encode({"key": key}).decode() if in_json else f"Your {key}"
    await complete(cache, Model(msgspec.structs.replace(ANSWER, text=text)), request(profile=secret))
    assert not await is_hit(cache, request(profile=secret))


async def test_an_entry_ends_with_its_time(tmp_path, monkeypatch):
    cache = CacheInterceptor(CacheSettings(enabled=True, dir=tmp_path, ttl=60), fingerprint)
    now = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    await complete(cache, Model(), request())
    assert [await is_hit(cache, request()) for _ in range(3)] == [True] * 3
    now += 61
    assert not await is_hit(cache, request())
    await cache.aclose()


async def test_a_closed_cache_opens_again(cache):
    await complete(cache, Model(), request())
    await cache.aclose()
    assert await is_hit(cache, request())


def test_event_loops_share_one_cache(tmp_path):
    cache = CacheInterceptor(CacheSettings(enabled=True, dir=tmp_path), fingerprint)
    for hits in (0, 1):

        async def once() -> None:
            await complete(cache, Model(), request())

        asyncio.run(once())
        assert cache.hits == hits
    asyncio.run(cache.aclose())
