"""A call whose time is over sends nothing more, whatever took the time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

from lmclient import AsyncClient, Attempt, Client, CompletionRequest, Hooks, ModelProfile, Settings, errors

from .servers import COMPLETION, answering, response, serving

COMPLETION_PATH = b"/completions HTTP"


class TakingAllTheTime(Hooks):
    """The way to the provider lasts until the call's deadline."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def before(self, request: CompletionRequest) -> CompletionRequest:
        return msgspec.structs.replace(request, deadline=time.monotonic(), attempts=self.attempts)


def profile_at(port: int, **values: Any) -> ModelProfile:
    return ModelProfile(
        **{"provider": "openai-chat", "model": "mock", "url": f"http://127.0.0.1:{port}", **values}
    )


async def test_a_request_is_not_sent_after_the_deadline(settings: Settings) -> None:
    seen: list[bytes] = []
    late = TakingAllTheTime()
    async with (
        serving(answering(response(), seen=seen)) as port,
        AsyncClient(settings, interceptors=[late]) as client,
    ):
        with pytest.raises(errors.TimeoutError, match=r"'mock'.* ran out before the request was sent"):
            await client.complete(profile_at(port), "Hello", timeout=60)
    assert seen == []
    assert late.attempts == []


@pytest.mark.parametrize(
    "values",
    [
        {"model": ""},
        {"tokenizer": "llama-server", "max_context_length": 100},
        {"provider": "openai-text", "prompt_format": "auto"},
        {"provider": "openrouter"},
    ],
    ids=["the first model", "tokens", "the template", "prices"],
)
async def test_what_is_asked_before_the_request_counts_to_the_calls_time(
    client: AsyncClient, values: dict[str, Any]
) -> None:
    seen: list[bytes] = []

    async def silent(request: bytes, writer: asyncio.StreamWriter) -> None:
        seen.append(request)
        if COMPLETION_PATH not in request:
            await asyncio.Event().wait()
        writer.write(response(COMPLETION))

    async with serving(silent) as port:
        began = time.monotonic()
        with pytest.raises(errors.TimeoutError, match="ran out before the request was sent"):
            await client.complete(profile_at(port, **values), "x" * 100, timeout=0.5)
    assert time.monotonic() - began < 3
    assert not any(COMPLETION_PATH in request for request in seen)


@pytest.mark.parametrize("seconds", [1e17, 1e308, float("inf")])
async def test_a_timeout_may_be_as_long_as_one_likes(
    client: AsyncClient, sync_client: Client, seconds: float
) -> None:
    async with serving(answering(response(b'{"data":[{"id":"m"}]}'), response())) as port:
        profile = profile_at(port, model="")
        assert (await client.complete(profile, "Hello", timeout=seconds)).text == "hi"
        assert await asyncio.to_thread(
            lambda: sync_client.complete(profile_at(port), "", timeout=seconds).text
        )
