"""Structured output through the whole client: the request's schema, the value, and another try."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pydantic
import pytest

import lmclient
from lmclient.testing import ReplayProvider


class River(pydantic.BaseModel):
    name: str
    length_km: int


def answer(text: str) -> dict[str, object]:
    """A recorded chat completion with this text."""
    import json

    body = {"id": "1", "model": "m", "choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    response = {"status": 200, "content_type": "application/json", "body": json.dumps(body)}
    return {"name": "answer", "path": "/v1/chat/completions", "response": response}


@pytest.fixture
async def client() -> AsyncIterator[lmclient.AsyncClient]:
    async with lmclient.AsyncClient(interceptors=[]) as client:
        yield client


def profile_at(provider: ReplayProvider, **values: Any) -> lmclient.ModelProfile:
    url = provider.url("answer", "v1")
    return lmclient.ModelProfile(provider="openai-chat", model="m", url=url, **values)


async def test_the_schema_is_sent_and_the_answer_is_a_value(client: lmclient.AsyncClient) -> None:
    async with ReplayProvider.open([answer('{"name": "Rhine", "length_km": 1233}')]) as provider:
        reply = await client.complete(profile_at(provider), "A river.", response_format=River)
        assert reply.parse(River) == River(name="Rhine", length_km=1233)
        sent = provider.requests["answer"][0]["body"]["response_format"]
        assert sent["json_schema"]["schema"]["required"] == ["name", "length_km"]


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_was_wrong(
    client: lmclient.AsyncClient,
) -> None:
    async with ReplayProvider.open([answer('{"name": "Rhine"}')]) as provider:
        reply = await client.complete(profile_at(provider), "A river.", response_format=River, retries=2)
        requests = provider.requests["answer"]
        assert len(requests) == 3
        last = requests[-1]["body"]["messages"]
        assert [message["role"] for message in last] == ["user", "assistant", "user", "assistant", "user"]
        assert "length_km" in last[-1]["content"]
        with pytest.raises(lmclient.ProtocolError, match="length_km"):
            reply.parse(River)


async def test_each_question_has_its_own_row_and_the_answer_the_cost_of_the_last(
    settings: lmclient.Settings,
) -> None:
    async with ReplayProvider.open([answer("Rhine")]) as provider, lmclient.AsyncClient(settings) as client:
        priced = profile_at(provider, cost={"input": "2", "output": "8"})
        reply = await client.complete(priced, "A river.", response_format=River, retries=1)
        last, first = await client.spend.records()
    assert reply.requests == 1
    assert (reply.cost, len(provider.requests["answer"])) == (last.cost, 2)
    assert first.cost is not None
    assert first.cost > 0


async def test_an_answer_that_fits_is_asked_for_once(client: lmclient.AsyncClient) -> None:
    async with ReplayProvider.open([answer('{"name": "Po", "length_km": 652}')]) as provider:
        await client.complete(profile_at(provider), "A river.", response_format=River, retries=2)
        assert len(provider.requests["answer"]) == 1


async def test_a_stream_takes_no_retries(client: lmclient.AsyncClient) -> None:
    with pytest.raises(lmclient.UnsupportedOptionError, match="complete"):
        client.stream("m", "A river.", response_format=River, retries=1)
