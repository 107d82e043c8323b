"""POST /v1/chat/completions, with OpenAI's own client against it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import openai
import pydantic
import pytest

import lmclient
from lmclient import FinishReason, Settings, ToolCall, Usage
from lmclient.server.serving import open_gateway
from lmclient.testing import ScriptedModel

HELLO = [{"role": "user", "content": "Hello"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = ToolCall("call-1", "weather", {"city": "Bern"})
USAGE = Usage(input_tokens=100, cached_input_tokens=60, output_tokens=50, reasoning_tokens=20)


class River(pydantic.BaseModel):
    name: str
    length: int


def test_a_whole_answer(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi there", reasoning="A greeting.")
    answer = client.chat.completions.create(model="m", messages=HELLO)
    message = answer.choices[0].message
    assert (message.content, message.reasoning_content) == ("Hi there", "A greeting.")
    assert (answer.choices[0].finish_reason, answer.model) == ("stop", "scripted")


def test_usage_has_all_parts_and_the_cost(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi", usage=USAGE)
    usage = client.chat.completions.create(model="m", messages=HELLO).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 50, 150)
    assert usage.prompt_tokens_details.cached_tokens == 60
    assert usage.completion_tokens_details.reasoning_tokens == 20
    assert usage.cost == pytest.approx(0.2)


def test_headers_tell_cost_profile_and_cache(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi", usage=USAGE)
    headers = client.chat.completions.with_raw_response.create(model="m", messages=HELLO).headers
    assert Decimal(headers["x-lmclient-cost"]) == Decimal("0.2")
    assert (headers["x-lmclient-profile"], headers["x-lmclient-cached"]) == ("scripted", "false")


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses"])
def test_a_client_of_the_gateway_books_what_it_says_in_its_currency(
    serve: Callable[[Settings], str], provider: str, tmp_path: Path
) -> None:
    with ScriptedModel(cost={"input": "0.123457", "output": "0.7", "currency": "EUR"}) as model:
        model.reply("Hi", times=2, usage=Usage(input_tokens=12_345, output_tokens=7))
        url = serve(model.settings(tmp_path / "gateway"))
        with lmclient.Client(Settings(data_dir=tmp_path / "client")) as client:
            profile = lmclient.ModelProfile(provider=provider, model="m", url=url, api_key="none")
            whole = client.complete(profile, "Hello")
            with client.stream(profile, "Hello") as stream:
                list(stream)
            cost = Decimal("0.001528976665")
            for answer in (whole, stream.completion):
                assert (answer.cost, answer.currency, answer.cost_source) == (cost, "EUR", "provider")
            assert client.spend.total() == {"EUR": 2 * cost}


def test_the_model_may_be_a_profile(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi")
    assert client.chat.completions.create(model="scripted", messages=HELLO).choices[0].message.content == "Hi"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (FinishReason.LENGTH, "length"),
        (FinishReason.CONTENT_FILTER, "content_filter"),
        (FinishReason.UNKNOWN, "stop"),
    ],
)
def test_finish_reasons(client: openai.OpenAI, model: ScriptedModel, reason: FinishReason, said: str) -> None:
    model.reply("Hi", finish_reason=reason)
    assert client.chat.completions.create(model="m", messages=HELLO).choices[0].finish_reason == said


def test_options_reach_the_model(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi")
    client.chat.completions.create(
        model="m",
        messages=HELLO,
        temperature=0.5,
        top_p=0.9,
        stop=["END", "."],
        seed=7,
        max_completion_tokens=99,
        reasoning_effort="low",
        extra_body={"unknown_to_us": {"x": 1}},
    )
    options = model.requests[0].options
    assert (options.temperature, options.top_p, list(options.stop)) == (0.5, 0.9, ["END", "."])
    assert (options.seed, options.max_tokens, options.reasoning_effort) == (7, 99, "low")


def test_fields_that_are_unknown_go_nowhere(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi")
    client.chat.completions.create(model="m", messages=HELLO, extra_body={"api_base": "http://evil"})
    assert model.requests[0].options.extra_body == {}


def test_metadata_and_user_become_tags(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi")
    client.chat.completions.create(model="m", messages=HELLO, metadata={"team": "red"}, user="42")
    assert model.requests[0].tags == {"team": "red", "user": "42"}


def test_a_tool_call_and_its_result(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply(tool_calls=[CALL])
    model.reply("Sunny.")
    first = client.chat.completions.create(model="m", messages=HELLO, tools=[WEATHER], tool_choice="required")
    assert first.choices[0].finish_reason == "tool_calls"
    call = first.choices[0].message.tool_calls[0]
    assert (call.id, call.function.name, call.function.arguments) == ("call-1", "weather", '{"city":"Bern"}')
    result = {"role": "tool", "tool_call_id": call.id, "content": "sun"}
    messages = [*HELLO, first.choices[0].message, result]
    second = client.chat.completions.create(model="m", messages=messages, tools=[WEATHER])
    assert second.choices[0].message.content == "Sunny."
    turns = model.requests[1].conversation.turns
    assert (turns[1].tool_calls[0].arguments, turns[2].tool_call_id) == ({"city": "Bern"}, "call-1")


def test_a_tool_may_be_chosen(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply(tool_calls=[CALL])
    choice = {"type": "function", "function": {"name": "weather"}}
    client.chat.completions.create(
        model="m", messages=HELLO, tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False
    )
    options = model.requests[0].options
    assert (options.tool_choice, options.parallel_tool_calls) == ("weather", False)


def test_the_sdk_parses_structured_output(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply('{"name": "Aare", "length": 288}')
    answer = client.chat.completions.parse(model="m", messages=HELLO, response_format=River)
    assert answer.choices[0].message.parsed == River(name="Aare", length=288)


def test_a_stream_arrives_in_order(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("one two", reasoning="hm")
    chunks = list(client.chat.completions.create(model="m", messages=HELLO, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == "assistant"
    assert [getattr(delta, "reasoning_content", None) or delta.content for delta in deltas[1:-1]] == [
        "hm",
        "one",
        " two",
    ]
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_ends_with_usage_if_asked(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi", usage=USAGE)
    options = {"include_usage": True}
    last = list(
        client.chat.completions.create(model="m", messages=HELLO, stream=True, stream_options=options)
    )[-1]
    assert (last.choices, last.usage.total_tokens, last.usage.cost) == ([], 150, pytest.approx(0.2))
    assert last.lmclient == {"profile": "scripted", "cached": False}


def test_the_sdks_stream_helper_collects_tools_and_text(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Let me see.", tool_calls=[CALL, ToolCall("call-2", "weather", {"city": "Ulm"})])
    with client.chat.completions.stream(model="m", messages=HELLO, tools=[WEATHER]) as stream:
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert message.content == "Let me see."
    assert [(call.id, call.function.arguments) for call in message.tool_calls] == [
        ("call-1", '{"city":"Bern"}'),
        ("call-2", '{"city":"Ulm"}'),
    ]
    assert final.choices[0].finish_reason == "tool_calls"


def test_the_sdk_parses_structured_streams(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply('{"name": "Aare", "length": 288}')
    with client.chat.completions.stream(model="m", messages=HELLO, response_format=River) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == River(name="Aare", length=288)


async def test_the_async_sdk(model: ScriptedModel, tmp_path: Path) -> None:
    model.reply("Hi there", times=None)
    async with (
        open_gateway(model.settings(tmp_path)) as url,
        openai.AsyncOpenAI(base_url=url, api_key="none") as client,
    ):
        whole = await client.chat.completions.create(model="m", messages=HELLO)
        pieces = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in pieces])
    assert whole.choices[0].message.content == streamed == "Hi there"


def test_unicode_separators_stay_text(client: openai.OpenAI, model: ScriptedModel) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf ✅ 漢"
    model.reply(text)
    chunks = client.chat.completions.create(model="m", messages=HELLO, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text


def test_the_cache_answers_a_second_time(
    model: ScriptedModel, serve: Callable[[Settings], str], tmp_path: Path
) -> None:
    model.reply("Hi", usage=USAGE)
    url = serve(model.settings(tmp_path, cache={"enabled": True}))
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        client.chat.completions.create(model="m", messages=HELLO)
        again = client.chat.completions.with_raw_response.create(model="m", messages=HELLO)
    assert (again.headers["x-lmclient-cached"], again.headers["x-lmclient-cost"]) == ("true", "0")


def test_no_cache_asks_anew(model: ScriptedModel, serve: Callable[[Settings], str], tmp_path: Path) -> None:
    model.reply("first")
    model.reply("second")
    url = serve(model.settings(tmp_path, cache={"enabled": True}))
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        client.chat.completions.create(model="m", messages=HELLO)
        headers = {"cache-control": "no-cache"}
        again = client.chat.completions.create(model="m", messages=HELLO, extra_headers=headers)
    assert again.choices[0].message.content == "second"


async def test_calls_are_booked_with_their_tags(model: ScriptedModel, tmp_path: Path) -> None:
    model.reply("Hi", usage=USAGE)
    settings = model.settings(tmp_path, spend={"enabled": True})
    async with (
        open_gateway(settings) as url,
        openai.AsyncOpenAI(base_url=url, api_key="none") as client,
    ):
        await client.chat.completions.create(model="m", messages=HELLO, user="42")
    async with lmclient.AsyncClient(settings) as reader:
        (record,) = await reader.spend.records()
    assert (record.category, record.tags, record.cost) == ("m", {"user": "42"}, Decimal("0.2"))
