"""Wrong input gets an error that says what to do, before any request where that is possible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    BadRequestError,
    Client,
    ConfigurationError,
    Conversation,
    LMClientError,
    ModelProfile,
    NotFoundError,
    ProfileError,
    ProtocolError,
    ServerError,
    Settings,
    Tool,
    UnsupportedOptionError,
    errors,
)

from .conftest import Fault
from .servers import answering, response, serving

FaultOf = Callable[[str], Fault]


# Before any request


@pytest.mark.parametrize(
    ("conversation", "says"),
    [
        ([], "empty"),
        (Conversation(), "empty"),
        ((), "empty"),
        (None, "A conversation is a str"),
        (5, "A conversation is a str"),
        (b"Hello", "A conversation is a str|Message 0"),
        ({"role": "user", "content": "Hello"}, "A conversation is a str|list of messages"),
        (["Hello"], "Message 0 is 'Hello'"),
        ([{"content": "Hello"}], "Message 0 has"),
        ([{"role": "boss", "content": "Hello"}], "boss"),
        ([{"role": "user", "content": 5}], "Message 0"),
        ([{"role": "user", "content": [{"type": "sound"}]}], "Message 0"),
    ],
)
async def test_a_conversation_that_is_none_is_refused(
    client: AsyncClient, fault: FaultOf, conversation: Any, says: str
) -> None:
    ok = fault("ok")
    with pytest.raises(BadRequestError, match=says) as caught:
        await client.complete(ok.profile(), conversation)
    assert (ok.count("requests"), caught.value.status) == (None, None)


async def test_an_unknown_target_names_what_there_is(client: AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "my-model.toml").write_text('provider = "openai-chat"\nmodel = "x"\n')
    with pytest.raises(ConfigurationError, match="my-model"):
        await client.complete("my-modle", "Hello")


@pytest.mark.parametrize("target", [None, 5, "", "no/such", "../etc"])
async def test_what_is_no_target_is_refused(client: AsyncClient, target: Any) -> None:
    with pytest.raises(ConfigurationError):
        await client.complete(target, "Hello")


@pytest.mark.parametrize("call", ["stream", "models", "profile", "preview"])
def test_every_call_refuses_an_unknown_target(sync_client: Client, call: str) -> None:
    arguments = () if call in ("models", "profile") else ("Hello",)
    with pytest.raises(ConfigurationError, match="nobody"):
        getattr(sync_client, call)("nobody", *arguments)


@pytest.mark.parametrize(
    "url", ["llm.example/v1", "//llm.example", "ftp://llm.example", "http://", "localhost:80"]
)
def test_a_url_without_scheme_is_refused(url: str) -> None:
    with pytest.raises(ProfileError, match="http://") as caught:
        ModelProfile(provider="openai-chat", model="x", url=url)
    assert caught.value.key == "url"


async def test_an_unknown_provider_names_the_closest(client: AsyncClient) -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'openai-chat'"):
        await client.complete(ModelProfile(provider="openai-chta", model="x"), "Hello")


async def test_a_missing_variable_names_profile_and_variable(client: AsyncClient, tmp_path: Path) -> None:
    """H06"""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.toml").write_text(
        'provider = "openai-chat"\nmodel = "x"\napi_key = "${NOPE}"\nurl = "http://127.0.0.1:9"\n'
    )
    with pytest.raises(ProfileError, match=r"(?s)mine.*NOPE|NOPE.*mine"):
        await client.complete("mine", "Hello")


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"temprature": 1}, ConfigurationError, "temprature"),
        ({"temperature": "hot"}, BadRequestError, "temperature"),
        ({"temperature": -1}, BadRequestError, "temperature"),
        ({"temperature": float("nan")}, BadRequestError, "temperature"),
        ({"top_p": 2}, BadRequestError, "top_p"),
        ({"max_tokens": -1}, BadRequestError, "max_tokens"),
        ({"max_tokens": 1.5}, BadRequestError, "max_tokens"),
        ({"max_tokens": "10"}, BadRequestError, "max_tokens"),
        ({"seed": "x"}, BadRequestError, "seed"),
        ({"stop": 5}, BadRequestError, "stop"),
        ({"stop": ["a", 5]}, BadRequestError, "stop"),
        ({"tools": "weather"}, BadRequestError, "tools"),
        ({"tools": [print]}, BadRequestError, "tools"),
        ({"tools": [{"name": "x"}]}, BadRequestError, "tools"),
        ({"extra_body": "x"}, BadRequestError, "extra_body"),
        ({"extra_body": {"x": object()}}, BadRequestError, "JSON|extra_body"),
        ({"timeout": "soon"}, BadRequestError, "timeout"),
        ({"timeout": 0}, BadRequestError, "timeout"),
        ({"timeout": -1}, BadRequestError, "timeout"),
        ({"tags": "x"}, BadRequestError, "tags"),
        ({"tags": {"user": 5}}, BadRequestError, "tags"),
        ({"tool_choice": "required"}, BadRequestError, "tool_choice"),
        ({"tool_choice": "sun", "tools": [Tool("weather", "", {"type": "object"})]}, BadRequestError, "sun"),
        ({"reasoning_effort": 5}, BadRequestError, "reasoning_effort"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_option_that_is_wrong_is_refused(
    client: AsyncClient,
    fault: FaultOf,
    options: dict[str, Any],
    kind: type[LMClientError],
    says: str,
    stream: bool,
) -> None:
    ok = fault("ok")

    async def call() -> None:
        if stream:
            await client.stream(ok.profile(), "Hello", **options).wait()
        else:
            await client.complete(ok.profile(), "Hello", **options)

    with pytest.raises(kind, match=says):
        await call()
    assert ok.count("requests") is None


async def test_an_option_that_the_protocol_cannot_carry_is_refused(
    client: AsyncClient, fault: FaultOf
) -> None:
    ok = fault("ok")
    with pytest.raises(UnsupportedOptionError, match="seed"):
        await client.complete(ok.profile(provider="anthropic"), "Hello", seed=1)
    assert ok.count("requests") is None


def test_text_with_half_a_surrogate_is_refused_or_sent(sync_client: Client, fault: FaultOf) -> None:
    """Not a UnicodeEncodeError out of the depths."""
    ok = fault("ok")
    with pytest.raises(BadRequestError, match="surrogates"):
        sync_client.complete(ok.profile(), "half \ud83d of an emoji")
    assert ok.count("requests") is None


# What the server says


async def test_a_model_that_is_not_there(client: AsyncClient, fault: FaultOf) -> None:
    with pytest.raises(NotFoundError, match="`mock` does not exist"):
        await client.complete(fault("not_found_model").profile(), "Hello")


PAGE = b"<!DOCTYPE html><html><head><title>Maintenance</title></head><body>" + b"x" * 5000 + b"</body></html>"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (PAGE, "DOCTYPE|Maintenance"),
        (b"not json", "not json"),
        (b"", "empty"),
        (b"   ", "nothing"),
        (b"null", "null|choices"),
        (b"5", "5|choices"),
        (b'"text"', "text"),
        (b"[]", "cannot be read"),
        (b"{}", "choices"),
        (b'{"object":"x"}', "choices"),
        (b'{"choices":5}', "choices"),
        (b'{"choices":[5]}', "choices"),
        (b'{"choices":[{"message":"x"}]}', "message|choices"),
        (b"\xff\xfe\x00", ""),
        (b'{"choices":[{"message":{"content":"x"}}]', "cannot be read"),
    ],
)
async def test_a_body_that_is_no_answer(client: AsyncClient, stream: bool, body: bytes, says: str) -> None:
    async with serving(answering(response(body))) as port:
        profile = ModelProfile(provider="openai-chat", name="mine", model="m", url=f"http://127.0.0.1:{port}")
        call = client.stream(profile, "Hello").wait() if stream else client.complete(profile, "Hello")
        with pytest.raises(LMClientError, match=f"Profile 'mine'.*({says})") as caught:
            await call
    assert isinstance(caught.value, ProtocolError | errors.StreamInterruptedError)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


async def test_an_html_error_page_shows_its_title(client: AsyncClient, fault: FaultOf) -> None:
    async with AsyncClient(client.settings, interceptors=[]) as bare:
        with pytest.raises(ServerError, match="502 Bad Gateway") as caught:
            await bare.complete(fault("bad_gateway_html").profile(), "Hello")
    assert "<" not in str(caught.value)


async def test_an_error_inside_a_successful_answer(client: AsyncClient, fault: FaultOf) -> None:
    async with AsyncClient(client.settings, interceptors=[]) as bare:
        with pytest.raises(ServerError, match="Provider returned error") as caught:
            await bare.complete(fault("error_in_200").profile(), "Hello")
    assert caught.value.status == 502


@pytest.mark.parametrize(
    "body", [b"<html>", b"{}", b'{"data":5}', b'{"data":null}', b"", b"null", b'"x"'], ids=str
)
async def test_a_list_of_models_that_is_none(settings: Settings, body: bytes) -> None:
    async with serving(answering(response(body))) as port, AsyncClient(settings) as client:
        profile = ModelProfile(provider="openai-chat", name="mine", model="m", url=f"http://127.0.0.1:{port}")
        with pytest.raises(ProtocolError, match="Profile 'mine'"):
            await client.models(profile)


async def test_a_profile_without_model_and_a_server_without_models(settings: Settings) -> None:
    async with serving(answering(response(b'{"data":[]}'))) as port, AsyncClient(settings) as client:
        profile = ModelProfile(provider="openai-chat", name="mine", url=f"http://127.0.0.1:{port}")
        with pytest.raises(ConfigurationError, match="set `model`"):
            await client.complete(profile, "Hello")


async def test_a_profile_without_model_takes_the_servers_first(client: AsyncClient, fault: FaultOf) -> None:
    assert (await client.complete(fault("ok").profile(model="", name="first"), "Hello")).model == "mock"


async def test_an_endless_error_body_ends(settings: Settings) -> None:
    async def endless(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with serving(endless) as port, AsyncClient(settings) as client:
        profile = ModelProfile(provider="openai-chat", model="m", url=f"http://127.0.0.1:{port}")
        with pytest.raises(BadRequestError) as caught:
            await client.complete(profile, "Hello")
    assert len(str(caught.value)) < 400
