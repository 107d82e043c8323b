"""What is sent to OpenAI's Responses."""

import functools
import json
from typing import TypedDict

import msgspec
import pytest
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from lmclient.core.conversation import Conversation, FilePart, ImagePart, TextPart, Turn
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.tools import Tool, ToolCall
from lmclient.errors import BadRequestError, UnsupportedOptionError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.openai_responses import OpenAIResponses
from lmclient.providers.dialects import OPENAI

WEATHER = Tool("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
STRICT = Tool("clock", "The time.", {"type": "object", "properties": {}}, strict=True)
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA", "status": None}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": '{"city":"Rome"}',
    "status": "completed",
}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
}
CALLED = (ToolCall("call_1", "weather", {"city": "Rome"}, '{"city":"Rome"}'),)


def http(conversation="Hi", *, stream=False, profile=None, **options):
    profile = {"provider": "openai-responses", "model": "gpt-4.1", "api_key": "sk-key", **(profile or {})}
    request = CompletionRequest(
        profile=ModelProfile(**profile),
        conversation=Conversation.of(conversation),
        options=Options(**options),
        stream=stream,
    )
    return OpenAIResponses().encode(request, OPENAI)


def body(conversation="Hi", **options):
    return json.loads(http(conversation, **options).body)


def rest(conversation="Hi", **options):
    """The body without the fields that every body has."""
    fixed = ("model", "input", "store", "include")
    return {name: value for name, value in body(conversation, **options).items() if name not in fixed}


def answered(*items, text="", calls=CALLED):
    """A conversation in which the assistant's turn has these items and its call is answered."""
    return [
        Turn("user", "Weather?"),
        Turn("assistant", text, tool_calls=calls, provider_items=items, reasoning="hidden"),
        Turn("tool", "Sunny", tool_call_id="call_1", name="weather"),
    ]


def test_plain_call_is_stateless_and_asks_for_the_encrypted_reasoning():
    assert body() == {
        "model": "gpt-4.1",
        "input": [{"role": "user", "content": "Hi"}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_request_goes_to_the_endpoint_with_the_key():
    request = http()
    assert request.url == "https://api.openai.com/v1/responses"
    assert request.headers["authorization"] == "Bearer sk-key"


@pytest.mark.parametrize(
    "url", ["http://h", "http://h/", "http://h/v1", "http://h/v1/", "http://h/v1/responses"]
)
def test_url_with_or_without_the_endpoint_is_the_same(url):
    assert http(profile={"url": url}).url == "http://h/v1/responses"


def test_system_turn_at_the_head_becomes_the_instructions():
    sent = body([Turn("system", "Be brief."), Turn("user", "Hi")])
    assert sent["instructions"] == "Be brief."
    assert sent["input"] == [{"role": "user", "content": "Hi"}]


def test_system_turn_later_on_stays_in_its_place():
    sent = body([Turn("user", "Hi"), Turn("system", "Be brief."), Turn("user", "Go")])
    assert [item["role"] for item in sent["input"]] == ["user", "system", "user"]


def test_system_turn_alone_is_the_input():
    assert body([Turn("system", "Say hi.")])["input"] == [{"role": "system", "content": "Say hi."}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_tokens": 50}, {"max_output_tokens": 50}),
        ({"profile": {"max_tokens": 7}}, {"max_output_tokens": 7}),
        ({"profile": {"max_tokens": 0}}, {}),
        ({"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
        ({"profile": {"model": "gpt-5-mini"}, "temperature": 0, "top_p": 0.5}, {}),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ({"profile": {"reasoning_summary": "auto"}}, {"reasoning": {"summary": "auto"}}),
        (
            {"profile": {"reasoning_summary": "detailed", "reasoning_effort": "high"}},
            {"reasoning": {"effort": "high", "summary": "detailed"}},
        ),
        ({"stop": (), "seed": None}, {}),
        ({"tool_choice": "required", "parallel_tool_calls": False}, {}),
        ({"extra_body": {"truncation": "auto"}}, {"truncation": "auto"}),
        (
            {"reasoning_effort": "low", "extra_body": {"reasoning": {"context": "all_turns"}}},
            {"reasoning": {"effort": "low", "context": "all_turns"}},
        ),
    ],
)
def test_option_is_spelt_as_this_api_does(options, expected):
    assert rest(**options) == expected


def test_tools_are_flat_and_say_whether_they_are_strict():
    assert rest(tools=[WEATHER, STRICT]) == {
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "The weather.",
                "parameters": WEATHER.parameters,
                "strict": False,
            },
            {
                "type": "function",
                "name": "clock",
                "description": "The time.",
                "parameters": STRICT.parameters,
                "strict": True,
            },
        ]
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("required", "required"),
        ("none", "none"),
        ("weather", {"type": "function", "name": "weather"}),
    ],
)
def test_tool_choice(choice, expected):
    assert body(tools=[WEATHER], tool_choice=choice)["tool_choice"] == expected


def test_choice_of_a_tool_that_is_not_offered_is_an_error():
    with pytest.raises(BadRequestError, match=r"'nope'.*'weather'"):
        body(tools=[WEATHER], tool_choice="nope")


@pytest.mark.parametrize("option", [{"stop": ["x"]}, {"seed": 1}, {"seed": 0}])
def test_option_that_this_api_lacks_is_an_error(option):
    with pytest.raises(UnsupportedOptionError, match=next(iter(option))):
        body(**option)


def test_items_of_the_assistant_go_back_in_their_order():
    sent = body(answered(REASONING, MESSAGE, CALL, text="Looking."))["input"]
    without_null = {name: value for name, value in REASONING.items() if value is not None}
    assert sent[1:] == [
        without_null,
        MESSAGE,
        CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "Sunny"},
    ]


OWN_CALL = {key: CALL[key] for key in ("type", "call_id", "name", "arguments")}


@pytest.mark.parametrize(
    "items",
    [
        (),
        ({"text": "a part of Gemini's"},),
        ({"type": "thinking", "thinking": "Anthropic's", "signature": "x"},),
        ({"type": "reasoning_details", "reasoning_details": []},),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, CALL),
        (REASONING, {**CALL, "call_id": "another"}),
        (REASONING, MESSAGE, CALL),
    ],
    ids=["none", "gemini", "anthropic", "chat", "not-whole", "other-call", "other-text"],
)
def test_items_that_cannot_go_back_are_replaced_by_the_turn_itself(items):
    assert body(answered(*items))["input"][1] == OWN_CALL


def test_call_with_arguments_that_are_not_json_goes_back_without_them():
    calls = (ToolCall("call_1", "weather", None, '{"city":'),)
    broken = {**CALL, "arguments": '{"city":'}
    assert body(answered(broken, calls=calls))["input"][1] == {**OWN_CALL, "arguments": "{}"}


def test_reasoning_of_another_provider_stays_out():
    assert "hidden" not in json.dumps(body(answered()))


def test_assistant_of_another_provider_is_a_message_that_names_its_type():
    sent = body([Turn("user", "Hi"), Turn("assistant", "Hello"), Turn("user", "Go")])["input"]
    assert sent[1] == {"type": "message", "role": "assistant", "content": "Hello"}


class City(TypedDict):
    name: str


CITY = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_response_format_is_a_strict_schema():
    sent = body(response_format=City)["text"]["format"]
    assert (sent["type"], sent["name"], sent["strict"]) == ("json_schema", "City", True)
    assert {key: sent["schema"][key] for key in CITY} | {"properties": CITY["properties"]} == CITY


def test_json_without_a_schema():
    assert body(response_format={"type": "json_object"})["text"] == {"format": {"type": "json_object"}}


def test_server_without_schemas_is_asked_in_words():
    dialect = msgspec.structs.replace(OPENAI, json_schema=False)
    request = CompletionRequest(
        profile=ModelProfile(provider="openai-responses", model="m"),
        conversation=Conversation.create("Capital?"),
        options=Options(response_format=City),
    )
    sent = json.loads(OpenAIResponses().encode(request, dialect).body)
    assert sent["text"] == {"format": {"type": "json_object"}}
    assert "JSON schema" in sent["instructions"]


def test_result_without_a_call_id_is_an_error():
    with pytest.raises(BadRequestError, match="tool_call_id"):
        body([Turn("user", "x"), Turn("tool", "y")])


def test_image_of_the_assistant_is_an_error():
    with pytest.raises(UnsupportedOptionError, match="assistant"):
        body([Turn("user", "x"), Turn("assistant", [ImagePart(url="http://h/i.png")])])


def test_images_and_files_are_input_parts():
    parts = [
        TextPart("See"),
        ImagePart(url="http://h/i.png", detail="low"),
        ImagePart(data=b"\x89", media_type="image/png"),
        FilePart(data=b"%PDF", filename="a.pdf"),
        FilePart(url="http://h/a.pdf"),
        FilePart(file_id="file-1"),
    ]
    assert body([Turn("user", parts)])["input"][0]["content"] == [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": "http://h/i.png", "detail": "low"},
        {"type": "input_image", "image_url": "data:image/png;base64,iQ==", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_file", "file_url": "http://h/a.pdf"},
        {"type": "input_file", "file_id": "file-1"},
    ]


@functools.cache
def declared(stream):
    """The parameters of the openai package: building the validator takes half a second."""
    return TypeAdapter(ResponseCreateParamsStreaming if stream else ResponseCreateParamsNonStreaming)


COMBINATIONS = {
    "plain": {},
    "limits": {"max_tokens": 10, "temperature": 0.3, "top_p": 0.9},
    "reasoning": {"profile": {"reasoning_summary": "auto"}, "reasoning_effort": "low"},
    "tools": {"tools": [WEATHER, STRICT], "tool_choice": "weather", "parallel_tool_calls": True},
    "format": {"response_format": City},
    "json": {"response_format": {"type": "json_object"}},
    "required": {"tools": [WEATHER], "tool_choice": "required"},
    "round": {"conversation": answered(REASONING, CALL), "tools": [WEATHER]},
    "said-and-called": {"conversation": answered(REASONING, MESSAGE, CALL, text="Looking.")},
    "foreign-round": {"conversation": answered()},
    "parts": {
        "conversation": [
            Turn("system", "Be brief."),
            Turn("user", [TextPart("See"), ImagePart(data=b"1"), FilePart(data=b"2", filename="a.pdf")]),
            Turn("assistant", "Yes."),
            Turn("user", "And?"),
        ]
    },
}


@pytest.mark.parametrize("options", COMBINATIONS.values(), ids=COMBINATIONS)
@pytest.mark.parametrize("stream", [False, True])
def test_body_is_what_the_openai_package_declares(options, stream):
    declared(stream).validate_python(body(stream=stream, **options))


@pytest.mark.parametrize("options", COMBINATIONS.values(), ids=COMBINATIONS)
def test_streamed_body_differs_only_in_the_stream_field(options):
    assert body(stream=True, **options) == {**body(**options), "stream": True}


def test_list_of_models():
    protocol = OpenAIResponses()
    profile = ModelProfile(provider="openai-responses", url="http://h/v1/responses", api_key="sk-key")
    assert protocol.encode_models(profile, OPENAI).url == "http://h/v1/models"
    assert protocol.decode_models(b'{"data": [{"id": "a/b"}, {"id": "c"}]}') == ["a/b", "c"]
