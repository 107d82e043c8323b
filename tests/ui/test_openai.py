"""Chat completion chunks for people's own servers, and the plain events."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from lmclient import Completion
from lmclient.ui import openai_sse, sse_response
from lmclient.ui.events import encode
from lmclient.ui.openai_answer import usage_json


def data_of(written: bytes) -> list[str]:
    return [text.removeprefix("data: ") for text in written.decode().removesuffix("\n\n").split("\n\n")]


async def test_chunks_fit_the_sdks_model(whole: Any, read: Any) -> None:
    *texts, done = data_of(await read(openai_sse(whole.stream(), model="mine", include_usage=True)))
    chunks = [ChatCompletionChunk.model_validate_json(text, strict=True) for text in texts]
    assert done == "[DONE]"
    assert {chunk.model for chunk in chunks} == {"mine"}
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Let me see \u2028 ✅."
    calls = chunks[-3].choices[0].delta.tool_calls
    assert [(call.index, call.id, call.function.arguments) for call in calls] == [
        (0, "call-1", '{"city":"Bern"}'),
        (1, "call-2", '{"city": '),
    ]
    assert (chunks[-2].choices[0].finish_reason, chunks[-1].usage.total_tokens) == ("tool_calls", 15)


async def test_without_usage_the_finish_is_last(whole: Any, read: Any) -> None:
    *_, finish, done = data_of(await read(openai_sse(whole.stream())))
    assert json.loads(finish)["choices"][0]["finish_reason"] == "tool_calls"
    assert done == "[DONE]"


async def test_an_error_is_the_last_event(broken: Any, read: Any) -> None:
    last = json.loads(data_of(await read(openai_sse(broken.stream())))[-1])
    assert last["error"]["message"] == "The line broke."


async def test_plain_events_say_what_arrived_and_how_it_ended(whole: Any, read: Any) -> None:
    *arrived, done = (await read(sse_response(whole.stream()))).decode().removesuffix("\n\n").split("\n\n")
    said = [json.loads(text.removeprefix("data: ")) for text in arrived]
    assert said[0] == {"reasoning": "I must"}
    assert said[2] == {"text": "Let me"}
    assert said[4]["tool_calls"][0]["function"]["name"] == "weather"
    name, _, data = done.partition("\n")
    end = json.loads(data.removeprefix("data: "))
    assert (name, end["finish_reason"], end["usage"]["cost"]) == ("event: done", "tool_calls", 0.25)


async def test_a_plain_failure_is_an_event(broken: Any, read: Any) -> None:
    assert (await read(sse_response(broken.stream()))).endswith(
        b'event: failed\ndata: {"message":"The line broke."}\n\n'
    )


@pytest.mark.parametrize("cost", ["0.12345678901234567890123", "1E-9", "0", "12"])
def test_a_cost_keeps_all_its_digits(cost: str) -> None:
    written = encode(usage_json(Completion(cost=Decimal(cost)))).decode()
    assert json.loads(written, parse_float=Decimal)["cost"] == Decimal(cost)
