"""The cache in the default chain of a client, against real servers."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lmclient import AsyncClient, Client, Completion, LMClientError, ModelProfile, Settings
from lmclient.testing import FaultProvider, MockProvider
from lmclient.testing.fault import TEXT, TOOL_CALLS

COST = {"input": "1", "output": "2"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(data_dir=tmp_path / "data", cache={"enabled": True})


def profile(url: str, **values: Any) -> ModelProfile:
    return ModelProfile(**{"provider": "openai-chat", "model": "mock", "url": url, "cost": COST, **values})


@pytest.fixture
def ok(fault_provider: FaultProvider, tmp_path: Path) -> Any:
    """A profile of a healthy server; `ok.requests()` counts what arrived there."""
    return _Counted(fault_provider, "ok", tmp_path.name)


class _Counted:
    def __init__(self, provider: FaultProvider, scenario: str, key: str) -> None:
        self.profile = profile(provider.url(scenario, key=key), name=scenario)
        self._provider, self._name = provider, f"{scenario}~{key}"

    def requests(self) -> int:
        return int(self._provider.stats().get(self._name, {}).get("requests", 0))


async def ask_async(settings: Settings, target: Any, streamed: bool, **options: Any) -> Completion:
    async with AsyncClient(settings) as client:
        if not streamed:
            return await client.complete(target, "Hi", **options)
        async with client.stream(target, "Hi", **options) as stream:
            chunks = [chunk async for chunk in stream]
        assert "".join(chunk.text for chunk in chunks) == stream.completion.text
        return stream.completion


def ask_sync(settings: Settings, target: Any, streamed: bool, **options: Any) -> Completion:
    with Client(settings) as client:
        if not streamed:
            return client.complete(target, "Hi", **options)
        with client.stream(target, "Hi", **options) as stream:
            chunks = [*stream]
        assert "".join(chunk.text for chunk in chunks) == stream.completion.text
        return stream.completion


@pytest.mark.parametrize("first", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("second", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_plain_and_streamed_calls_share_their_answers(settings, ok, first, second, sync):
    def ask(streamed: bool) -> Completion:
        if sync:
            return ask_sync(settings, ok.profile, streamed)
        return asyncio.run(ask_async(settings, ok.profile, streamed))

    answer, hit = ask(first), ask(second)
    assert (answer.cached, hit.cached, ok.requests()) == (False, True, 1)
    assert (hit.text, hit.finish_reason, hit.usage) == (TEXT, answer.finish_reason, answer.usage)
    assert (hit.cost, hit.cost_source, hit.requests) == (Decimal(0), "cache", 0)
    assert Decimal(hit.metadata["saved_cost"]) == answer.cost > 0


def test_tool_calls_are_given_again(settings, fault_provider, tmp_path):
    counted = _Counted(fault_provider, "tool_call_stream", tmp_path.name)
    for streamed in (True, True, False):
        answer = ask_sync(settings, counted.profile, streamed)
        assert [call.raw_arguments for call in answer.tool_calls] == [call.arguments for call in TOOL_CALLS]
    assert counted.requests() == 1


@pytest.mark.parametrize(
    "scenario", ["content_filter", "length", "truncated_stream", "error_event", "null_content"]
)
def test_what_is_not_a_good_answer_is_asked_for_again(settings, fault_provider, tmp_path, scenario):
    counted = _Counted(fault_provider, scenario, tmp_path.name)
    once = settings.model_copy(update={"retry": settings.retry.model_copy(update={"attempts": 1})})
    for _ in range(2):
        try:
            assert not ask_sync(once, counted.profile, True).cached
        except LMClientError:  # whether it fails is not what this test is about
            continue
    assert counted.requests() == 2


def test_options_tell_requests_apart(settings, ok):
    for options in ({}, {"temperature": 0}, {"max_tokens": 5}, {"seed": 7}):
        assert not ask_sync(settings, ok.profile, False, **options).cached
        assert ask_sync(settings, ok.profile, False, **options, tags={"user": "2"}).cached
    assert not ask_sync(settings, ok.profile, False, response_format={"type": "object"}).cached


def test_the_cache_is_off_by_default(tmp_path, monkeypatch, ok):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert not ask_sync(Settings(data_dir=tmp_path / "data"), ok.profile, False).cached
    assert not (tmp_path / "data" / "cache").exists()


async def test_equal_calls_at_once_make_one_request(settings):
    async with MockProvider.open() as mock, AsyncClient(settings) as client:
        target = profile(f"{mock.url()}/chat/completions?delay_ms=50")
        answers = await asyncio.gather(*(client.complete(target, "Hi") for _ in range(10)))
        assert (mock.served, sum(answer.cached for answer in answers)) == (1, 9)


def test_what_a_fallback_answered_is_kept_as_its_own(settings, ok, fault_provider, tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    broken = _Counted(fault_provider, "bad_gateway_html", tmp_path.name)
    for counted in (broken, ok):
        file = folder / f"{counted.profile.name}.toml"
        file.write_text(f'provider = "openai-chat"\nmodel = "mock"\nurl = "{counted.profile.url}"\n')
    both = Settings(
        data_dir=tmp_path / "data",
        cache={"enabled": True},
        retry={"attempts": 1},
        categories={"m": ["bad_gateway_html", "ok"]},
    )
    answer = ask_sync(both, "m", False)
    assert (answer.profile, answer.cached) == ("ok", False)
    hit = ask_sync(both, "ok", False)
    assert (hit.cached, "fallback_from" in hit.metadata) == (True, False)
    assert ok.requests() == 1
    ask_sync(both, "m", False)
    assert broken.requests() == 2


def test_the_ledger_has_the_saving_and_no_second_cost(settings, ok):
    with Client(settings) as client:
        first, hit = client.complete(ok.profile, "Hi"), client.complete(ok.profile, "Hi")
        (row,) = client.spend.report(by=["profile"])
        assert client.spend.total() == {"USD": first.cost}
    assert (row.cost, row.saved_cost) == (first.cost, Decimal(hit.metadata["saved_cost"]))
