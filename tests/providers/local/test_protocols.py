"""llama.cpp's server as a real peer of every protocol that it speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import lmclient
from lmclient import FinishReason, ModelProfile

PROVIDERS = ("openai-chat", "openai-responses", "anthropic")


@pytest.fixture
async def client() -> AsyncIterator[lmclient.AsyncClient]:
    async with lmclient.AsyncClient(interceptors=[]) as client:
        yield client


def profile_of(provider: str, url: str) -> ModelProfile:
    return ModelProfile(provider=provider, model="smollm2", url=url, max_tokens=12, temperature=0)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_model_answers_whole_and_streamed_alike(
    client: lmclient.AsyncClient, local_url: str, provider: str
) -> None:
    profile = profile_of(provider, local_url)
    whole = await client.complete(profile, "Say hello.")
    async with client.stream(profile, "Say hello.") as stream:
        chunks = [chunk async for chunk in stream]
    streamed = stream.completion
    assert whole.text
    assert streamed.text == whole.text == "".join(chunk.text for chunk in chunks)
    assert len(chunks) > 1
    assert not whole.usage.estimated
    assert streamed.usage.input_tokens == whole.usage.input_tokens > 0
    assert streamed.usage.output_tokens == whole.usage.output_tokens > 0
    assert streamed.finish_reason is whole.finish_reason


async def test_all_protocols_say_the_same_to_the_model(client: lmclient.AsyncClient, local_url: str) -> None:
    replies = [await client.complete(profile_of(name, local_url), "Say hello.") for name in PROVIDERS]
    assert len({reply.text for reply in replies}) == 1
    assert len({reply.usage.input_tokens for reply in replies}) == 1
    assert replies[0].finish_reason in (FinishReason.LENGTH, FinishReason.STOP)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_conversation_goes_on(client: lmclient.AsyncClient, local_url: str, provider: str) -> None:
    conversation = lmclient.Conversation.create("My name is Ada.", system="Answer in one word.")
    conversation.append(await client.complete(profile_of(provider, local_url), conversation))
    conversation.add("user", "And now?")
    assert (await client.complete(profile_of(provider, local_url), conversation)).text


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_server_lists_its_model(
    client: lmclient.AsyncClient, local_url: str, provider: str
) -> None:
    assert "smollm2" in await client.models(profile_of(provider, local_url))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_prompt_that_is_too_long_is_a_context_length_error(
    client: lmclient.AsyncClient, local_url: str, provider: str
) -> None:
    with pytest.raises(lmclient.ContextLengthError):
        await client.complete(profile_of(provider, local_url), "word " * 20_000)
