"""POST /v1/responses, with OpenAI's own client against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pydantic
import pytest

from lmclient import FinishReason, ImagePart, Role, ToolCall, Usage
from lmclient.server.responses_input import read_input
from lmclient.server.serving import open_gateway
from lmclient.testing import ScriptedModel

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
CALL = ToolCall("call-1", "weather", {"city": "Bern"})
USAGE = Usage(input_tokens=100, cached_input_tokens=60, output_tokens=50, reasoning_tokens=20)


class River(pydantic.BaseModel):
    name: str


def test_a_whole_answer(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi there", reasoning="A greeting.")
    answer = client.responses.create(model="m", input="Hello", instructions="Be kind.")
    assert (answer.output_text, answer.status, answer.model) == ("Hi there", "completed", "scripted")
    assert answer.output[0].summary[0].text == "A greeting."
    assert (model.requests[0].system, model.requests[0].prompt) == ("Be kind.", "Hello")


def test_usage_has_all_parts_and_the_cost(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi", usage=USAGE)
    usage = client.responses.create(model="m", input="Hello").usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (100, 50, 150)
    assert usage.input_tokens_details.cached_tokens == 60
    assert usage.output_tokens_details.reasoning_tokens == 20
    assert usage.cost == pytest.approx(0.2)


def test_an_answer_that_was_cut_is_incomplete(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi", finish_reason=FinishReason.LENGTH)
    answer = client.responses.create(model="m", input="Hello", max_output_tokens=5)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_a_tool_call_and_its_result(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply(tool_calls=[CALL], reasoning="I must look.")
    model.reply("Sunny.")
    first = client.responses.create(model="m", input="Weather?", tools=[WEATHER])
    call = first.output[-1]
    assert (call.call_id, call.name, call.arguments) == ("call-1", "weather", '{"city":"Bern"}')
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sun"}
    given: list[Any] = [{"role": "user", "content": "Weather?"}, *first.output, result]
    assert client.responses.create(model="m", input=given, tools=[WEATHER]).output_text == "Sunny."
    user, assistant, tool = model.requests[1].conversation.turns
    assert (assistant.reasoning, assistant.tool_calls[0].arguments) == ("I must look.", {"city": "Bern"})
    assert (user.text, tool.tool_call_id, tool.text) == ("Weather?", "call-1", "sun")


def test_the_sdk_parses_structured_output(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply('{"name": "Aare"}')
    answer = client.responses.parse(model="m", input="A river?", text_format=River)
    assert answer.output_parsed == River(name="Aare")
    assert model.requests[0].options.response_format["json_schema"]["name"] == "River"


def test_events_come_in_the_official_order(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("Hi", reasoning="Hm", tool_calls=[CALL])
    events = list(client.responses.create(model="m", input="Hello", tools=[WEATHER], stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]


async def test_the_sdks_stream_helper_ends_with_the_whole_answer(
    model: ScriptedModel, tmp_path: Path
) -> None:
    model.reply("Hi there", reasoning="Hm", tool_calls=[CALL], usage=USAGE)
    async with (
        open_gateway(model.settings(tmp_path)) as url,
        openai.AsyncOpenAI(base_url=url, api_key="none") as client,
        client.responses.stream(model="m", input="Hello", tools=[WEATHER]) as stream,
    ):
        final = await stream.get_final_response()
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert (final.output_text, final.usage.total_tokens) == ("Hi there", 150)


def test_an_empty_answer_is_still_a_message(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("")
    with client.responses.stream(model="m", input="Hello") as stream:
        assert [item.type for item in stream.get_final_response().output] == ["message"]


def test_an_error_in_mid_stream_is_raised(client: openai.OpenAI, model: ScriptedModel) -> None:
    from lmclient import StreamInterruptedError

    model.reply("one two", error=StreamInterruptedError("The line broke."))
    with pytest.raises(openai.APIError, match="The line broke"):
        list(client.responses.create(model="m", input="Hello", stream=True))


@pytest.mark.parametrize(
    "wrong",
    [
        {"previous_response_id": "resp_1"},
        {"background": True},
        {"input": [{"type": "item_reference", "id": "x"}]},
        {"input": [{"type": "web_search_call", "id": "x"}]},
        {"tools": [{"type": "web_search"}]},
        {"input": [{"role": "user", "content": [{"type": "input_audio"}]}]},
    ],
)
def test_what_a_stateless_gateway_cannot_do_is_refused(client: openai.OpenAI, wrong: dict[str, Any]) -> None:
    body: dict[str, Any] = {"input": "Hello", **wrong}
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="m", **body)


def test_images_and_assistant_texts_are_read() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    conversation = read_input(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "See"}, image]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A cat."}]},
            {"role": "assistant", "content": "And a dog."},
        ],
        None,
    )
    system, user, first, second = conversation.turns
    assert (system.role, user.content[1]) == (Role.SYSTEM, ImagePart(data=b"hi", media_type="image/png"))
    assert (first.text, second.text) == ("A cat.", "And a dog.")
