"""Clients that users hold as transports: what arrives, what is sent, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from lmclient import (
    AsyncClient,
    AuthenticationError,
    Client,
    Completion,
    ConfigurationError,
    ConnectError,
    LMClientError,
    ModelProfile,
    ProviderError,
    RateLimitError,
    Settings,
    StreamInterruptedError,
    TimeoutError,
)
from lmclient.core.http import HttpRequest
from lmclient.testing import ReplayProvider
from lmclient.testing.fault import PIECES, TEXT
from lmclient.transports.adapting import adapt

SHARED = Path(__file__).parents[2].parent / "shared" / "exchanges"
RECORDED = sorted(SHARED.glob("openai-chat.*.json"))[::12]
OWN_KEY = "sk-of-the-users-client"

ANSWER = {
    "path": "/v1/chat/completions",
    "response": {
        "body": json.dumps(
            {
                "id": "chatcmpl-1",
                "model": "m-1",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "content": "Ich prüfe das. ✅",
                            "reasoning_content": "Weather is asked for.",
                            "tool_calls": [
                                {"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Köln"}'}}
                            ],
                        },
                    }
                ],
                "usage": {"prompt_tokens": 12, "completion_tokens": 7},
            },
            ensure_ascii=False,
        )
    },
}
EVENTS = (
    {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm. "}}]},
    {"choices": [{"index": 0, "delta": {"content": "Grüße "}}]},
    {"choices": [{"index": 0, "delta": {"content": "✅"}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
)
STREAM = {
    "path": "/v1/chat/completions",
    "response": {
        "content_type": "text/event-stream",
        "body": "".join(
            f"data: {json.dumps({'id': 'c', 'model': 'm-1', **event}, ensure_ascii=False)}\n\n"
            for event in EVENTS
        )
        + "data: [DONE]\n\n",
    },
}


def loaded(file: Path) -> dict[str, Any]:
    """The exchange, to be played without its pauses."""
    exchange: dict[str, Any] = json.loads(file.read_bytes())
    exchange["response"]["timing"] = []
    return exchange


def timeless(completion: Completion) -> Completion:
    return msgspec.structs.replace(completion, duration=0.0, time_to_first_token=None)


async def ask(client: AsyncClient, profile: ModelProfile, *, stream: bool = False) -> Completion:
    if not stream:
        return await client.complete(profile, "Hello")
    async with client.stream(profile, "Hello") as answer:
        async for _ in answer:
            pass
    return answer.completion


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_gives_the_same_completion_as_the_default_transport(
    kind: str, client_over: Callable[..., AsyncClient], stream: bool
) -> None:
    async with ReplayProvider.open({"x": STREAM if stream else ANSWER}, split=3) as server:
        url = server.url("x", "v1")
        profile = ModelProfile(provider="openai-chat", model="m", url=url)
        expected = await ask(client_over(None, url), profile, stream=stream)
        got = await ask(client_over(kind, url), profile, stream=stream)
    assert timeless(got) == timeless(expected)


@pytest.mark.skipif(not RECORDED, reason="there is no folder with recorded exchanges beside the checkout")
@pytest.mark.parametrize(
    "exchange", [loaded(file) for file in RECORDED], ids=[file.stem for file in RECORDED]
)
async def test_reads_recorded_answers_as_the_default_transport_does(
    kind: str, client_over: Callable[..., AsyncClient], exchange: dict[str, Any]
) -> None:
    async with ReplayProvider.open([exchange]) as server:
        url = server.url(exchange["name"], "v1")
        profile = ModelProfile(provider="openai-chat", model="m", url=url)
        outcomes = []
        for client in (client_over(None, url), client_over(kind, url)):
            try:
                outcomes.append(timeless(await ask(client, profile, stream=exchange["stream"])))
            except LMClientError as error:
                outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


async def test_chunks_arrive_as_the_server_sends_them(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    hanging = fault("hang_mid_stream")
    received = []
    async with client_over(kind, hanging.url).stream(hanging.profile(), "Hello") as stream:
        async for chunk in stream:
            received.append(chunk.text)
            if len(received) == 3:  # the server sends no more before we have these
                break
    assert received == list(PIECES[:3])


async def test_sends_the_key_of_the_users_client(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    ok = fault("ok")
    await ask(client_over(kind, ok.url), ok.profile())
    assert ok.count("authorization") == [True]


async def test_the_key_of_the_users_client_is_not_shown_when_the_server_repeats_it(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    refusing = fault("unauthorized")
    with pytest.raises(AuthenticationError, match=r"\*\*\*") as caught:
        await ask(client_over(kind, refusing.url), refusing.profile())
    assert OWN_KEY not in str(caught.value)


@pytest.mark.parametrize("kind", ["openai", "azure-openai", "azure"])
async def test_the_key_of_a_profile_stays_out_of_the_clients_own_server(
    kind: str, held: Callable[[str, str], Any], fault: Any
) -> None:
    refusing = fault("unauthorized")  # it repeats the key that was sent
    request = HttpRequest(
        url=f"{refusing.url}/chat/completions",
        headers={"authorization": "Bearer sk-of-the-profile", "content-type": "application/json"},
        body=b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}',
    )
    response = await adapt(held(kind, refusing.url)).send(request)
    body = await response.read()
    await response.aclose()
    assert b"sk-of-the-profile" not in body


@pytest.mark.parametrize("kind", ["openai", "azure-openai", "azure"])
async def test_a_profile_with_a_key_for_another_server_keeps_it(
    kind: str, client_over: Callable[..., AsyncClient]
) -> None:
    async with ReplayProvider.open({"x": ANSWER}) as server:
        profile = ModelProfile(
            provider="openai-chat", model="m", url=server.url("x", "v1"), headers={"Authorization": "Mine"}
        )
        await ask(client_over(kind, "http://127.0.0.1:9/v1"), profile)
        headers = server.requests["x"][-1]["headers"]
    assert ("authorization" in headers, "api-key" in headers) == (True, False)


async def test_a_profile_without_a_url_goes_to_the_clients_server(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    ok = fault("ok")
    completion = await ask(client_over(kind, ok.url), ok.profile(url=""))
    assert completion.text == TEXT


@pytest.mark.parametrize("scenario", ["rate_limited_once", "server_error_once", "reset_before_headers"])
async def test_retries_nothing_by_itself(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any, scenario: str
) -> None:
    failing = fault(scenario)
    with pytest.raises((ProviderError, ConnectError)):
        await ask(client_over(kind, failing.url), failing.profile())
    assert failing.count("requests") == 1


async def test_reads_the_wait_that_a_rate_limit_states(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    limited = fault("rate_limited_ms")
    with pytest.raises(RateLimitError) as caught:
        await ask(client_over(kind, limited.url), limited.profile())
    assert caught.value.retry_after == 0.2


async def test_hands_out_redirects_instead_of_following_them(
    kind: str, held: Callable[[str, str], Any], fault: Any
) -> None:
    redirecting = fault("redirect")
    request = HttpRequest(
        url=f"{redirecting.url}/chat/completions",
        headers={"content-type": "application/json"},
        body=b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}',
    )
    response = await adapt(held(kind, redirecting.url)).send(request)
    await response.aclose()
    assert (response.status, redirecting.count("requests", "ok")) == (307, None)


async def test_sends_no_key_to_where_another_server_redirects(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    redirecting = fault("cross_host_redirect")
    await ask(client_over(kind, redirecting.url), redirecting.profile())
    assert redirecting.count("authorization", "ok") == [False]


async def test_decompresses_pieces_as_they_come(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    zipped = fault("gzip")
    texts = []
    async with client_over(kind, zipped.url).stream(zipped.profile(), "Hello") as stream:
        async for chunk in stream:
            texts.append(chunk.text)
    assert texts == list(PIECES)


@pytest.mark.parametrize("scenario", ["reset_mid_stream", "truncated_json"])
async def test_a_lost_connection_is_an_interrupted_answer(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any, scenario: str
) -> None:
    broken = fault(scenario)
    with pytest.raises(StreamInterruptedError):
        await ask(client_over(kind, broken.url), broken.profile(), stream=True)


async def test_no_server_is_a_connect_error(kind: str, client_over: Callable[..., AsyncClient]) -> None:
    url = "http://127.0.0.1:9/v1"
    with pytest.raises(ConnectError, match=r"Cannot connect to http://127\.0\.0\.1:9"):
        await ask(client_over(kind, url), ModelProfile(provider="openai-chat", model="m", url=url))


@pytest.mark.parametrize(("scenario", "limit"), [("hang", "first_byte"), ("hang_mid_stream", "idle")])
async def test_silence_ends_at_the_profiles_limit(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any, scenario: str, limit: str
) -> None:
    silent = fault(scenario)
    with pytest.raises(TimeoutError, match=limit):
        await ask(client_over(kind, silent.url), silent.profile(timeouts={limit: 0.1}), stream=True)
    await aborted(silent)


async def test_a_cancelled_call_closes_its_connection(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    silent = fault("hang")
    task = asyncio.create_task(ask(client_over(kind, silent.url), silent.profile()))
    await until(lambda: silent.count("requests") == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await aborted(silent)


async def test_leaving_a_stream_closes_its_connection(
    kind: str, client_over: Callable[..., AsyncClient], fault: Any
) -> None:
    silent = fault("hang_mid_stream")
    async with client_over(kind, silent.url).stream(silent.profile(), "Hello") as stream:
        await anext(aiter(stream))
    await aborted(silent)


async def test_an_aborted_answer_closes_its_connection(
    kind: str, held: Callable[[str, str], Any], fault: Any
) -> None:
    silent = fault("hang_mid_stream")
    request = HttpRequest(
        url=f"{silent.url}/chat/completions",
        body=b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": true}',
    )
    response = await adapt(held(kind, silent.url)).send(request)
    await response.read()
    response.abort()
    await aborted(silent)


async def test_closing_our_client_leaves_the_users_open(
    kind: str, held: Callable[[str, str], Any], settings: Settings, fault: Any
) -> None:
    ok = fault("ok")
    own = held(kind, ok.url)
    for _ in range(2):
        async with AsyncClient(settings, interceptors=[], transport=own) as client:
            completion = await ask(client, ok.profile())
    assert completion.text == TEXT


@pytest.mark.parametrize("kind", ["httpx2", "openai"])
async def test_a_closed_client_of_the_user_is_named(
    kind: str, held: Callable[[str, str], Any], settings: Settings, fault: Any
) -> None:
    ok = fault("ok")
    own = held(kind, ok.url)
    await (own.aclose() if kind == "httpx2" else own.close())
    async with AsyncClient(settings, interceptors=[], transport=own) as client:
        with pytest.raises(ConfigurationError, match="closed"):
            await ask(client, ok.profile())


async def test_the_sync_client_takes_them_too(settings: Settings, fault: Any) -> None:
    ok = fault("ok")
    own = httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0))  # leaves none open
    with Client(settings, interceptors=[], transport=own) as client:
        assert client.complete(ok.profile(), "Hello").text == TEXT


async def aborted(fault: Any) -> None:
    await until(lambda: fault.count("aborted") == 1)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(400):
        if condition():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it did not happen within two seconds")
