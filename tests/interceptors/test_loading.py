"""Interceptors that the settings name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lmclient import (
    AsyncClient,
    Client,
    Completion,
    CompletionRequest,
    ConfigurationError,
    Hooks,
    LMClientError,
    ModelProfile,
    Settings,
)
from lmclient.interceptors.base import chain
from lmclient.testing.fault import TEXT

from .model_in_test import ANSWER, Model, request

GUARD = """
import lmclient

class Guard(lmclient.Hooks):
    def before(self, request):
        if "secret" in request.conversation.turns[-1].text:
            raise lmclient.BadRequestError("The guard refuses this.")
        return request

    async def after(self, request, completion):
        import msgspec
        return msgspec.structs.replace(completion, text=completion.text.upper())

async def passing(request, call_next):
    return await call_next(request)

number = 7

class Demanding:
    def __init__(self, argument): ...
"""


@pytest.fixture(autouse=True)
def guarding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "guarding.py").write_text(GUARD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "guarding", raising=False)


def settings(tmp_path: Path, *paths: str) -> Settings:
    return Settings(data_dir=tmp_path / "data", interceptors=paths)


def test_a_named_guard_sees_every_call(tmp_path, fault_provider):
    target = ModelProfile(
        provider="openai-chat", model="mock", url=fault_provider.url("ok", key=tmp_path.name)
    )
    with Client(settings(tmp_path, "guarding:Guard")) as client:
        assert client.complete(target, "Hi").text == TEXT.upper()
        with pytest.raises(Exception, match="The guard refuses"):
            client.complete(target, "a secret")
    assert fault_provider.stats()[f"ok~{tmp_path.name}"]["requests"] == 1


def test_they_stand_in_the_order_of_the_settings(tmp_path):
    client = AsyncClient(settings(tmp_path, "guarding.passing", "guarding:Guard"))
    names = [getattr(one, "__name__", type(one).__name__) for one in client._interceptors]
    assert names.index("passing") + 1 == names.index("Guard")
    assert names.index("SpendInterceptor") < names.index("passing") < names.index("FallbackInterceptor")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere:name", "No module named 'nowhere'"),
        ("guarding:nothing", "no attribute 'nothing'"),
        ("guarding:number", "7 is no interceptor"),
        ("guarding:Demanding", "argument"),
    ],
)
def test_what_cannot_be_loaded_is_named(tmp_path, path, says):
    with pytest.raises(ConfigurationError, match=says) as raised:
        AsyncClient(settings(tmp_path, path))
    assert path in str(raised.value)


@pytest.mark.parametrize("given", [Hooks, "guarding:Guard", None])
def test_what_is_no_interceptor_is_refused(tmp_path, given):
    with pytest.raises(ConfigurationError, match="no interceptor"):
        AsyncClient(Settings(data_dir=tmp_path), interceptors=[given])


class Plain(Hooks):
    def before(self, request: CompletionRequest) -> CompletionRequest:
        request.tags["before"] = "plain"
        return request

    def after(self, request: CompletionRequest, completion: Completion) -> Completion:
        request.tags["after"] = "plain"
        return completion


class Waiting(Hooks):
    async def before(self, request: CompletionRequest) -> CompletionRequest:
        request.tags["before"] = "waiting"
        return request

    async def after(self, request: CompletionRequest, completion: Completion) -> Completion:
        request.tags["after"] = "waiting"
        return completion


@pytest.mark.parametrize(("hooks", "seen"), [(Plain(), "plain"), (Waiting(), "waiting")])
async def test_hooks_may_be_async_or_not(hooks, seen):
    asked = request(tags={})
    await (await chain([hooks], Model())(asked)).wait()
    assert asked.tags == {"before": seen, "after": seen}


async def test_hooks_that_override_nothing_change_nothing():
    assert (await (await chain([Hooks()], Model())(request())).wait()).requests == 1


class Forgetful(Hooks):
    """Its author has forgotten to return something."""

    def before(self, request):
        return None


class Watching(Hooks):
    def after(self, request, completion):
        return None


class WatchingAsync(Hooks):
    async def after(self, request, completion):
        return None


async def test_a_hook_that_returns_no_request_is_named():
    with pytest.raises(LMClientError, match=r"Forgetful\.before returned None"):
        await (await chain([Forgetful()], Model())(request())).wait()


@pytest.mark.parametrize("hooks", [Watching(), WatchingAsync()])
async def test_a_hook_that_returns_no_completion_leaves_it_as_it_is(hooks):
    assert (await (await chain([hooks], Model())(request())).wait()).text == ANSWER.text


@pytest.mark.parametrize("returned", [Completion(text="x"), None, "hello"])
async def test_an_interceptor_that_returns_no_stream_is_named(returned):
    async def wrong(asked, call_next):
        return returned

    with pytest.raises(LMClientError, match=r"interceptor wrong returned .*expected a stream"):
        await chain([wrong], Model())(request())
