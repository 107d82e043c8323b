"""What is sent to Gemini."""

import json
from typing import TypedDict

import pytest

from lmclient.core.conversation import Conversation, FilePart, ImagePart, TextPart, Turn
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.tools import Tool, ToolCall
from lmclient.errors import BadRequestError, UnsupportedOptionError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.gemini import Gemini
from lmclient.providers.dialects import GEMINI

WEATHER = Tool("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
DECLARED = {
    "name": "weather",
    "description": "The weather.",
    "parametersJsonSchema": WEATHER.parameters,
}
THOUGHT = {"text": "Hm.", "thought": True}
SIGNED = {"functionCall": {"name": "weather", "args": {"city": "Rome"}}, "thoughtSignature": "c2ln"}
CALLED = (ToolCall("made_up_1", "weather", {"city": "Rome"}, '{"city":"Rome"}'),)


def http(conversation="Hi", *, stream=False, profile=None, **options):
    profile = {"provider": "gemini", "model": "gemini-2.5-flash", "api_key": "AIza-key", **(profile or {})}
    request = CompletionRequest(
        profile=ModelProfile(**profile),
        conversation=Conversation.of(conversation),
        options=Options(**options),
        stream=stream,
    )
    return Gemini().encode(request, GEMINI)


def body(conversation="Hi", **options):
    return json.loads(http(conversation, **options).body)


def rest(**options):
    return {name: value for name, value in body(**options).items() if name != "contents"}


def config(model="gemini-2.5-flash", **options):
    profile = {"model": model, **options.pop("profile", {})}
    return body(profile=profile, **options).get("generationConfig", {})


def answered(*parts, text="", calls=CALLED, **result):
    """A conversation in which the model's turn has these parts and its call is answered."""
    return [
        Turn("user", "Weather?"),
        Turn("assistant", text, tool_calls=calls, provider_items=parts, reasoning="hidden"),
        Turn("tool", "Sunny", tool_call_id=calls[0].id, name="weather", **result),
    ]


def test_plain_call():
    assert body() == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def test_request_goes_to_the_model_with_the_key():
    request = http()
    assert request.url == (
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
    )
    assert request.headers["x-goog-api-key"] == "AIza-key"
    assert "authorization" not in request.headers


def test_stream_is_another_method_and_asks_for_events():
    assert http(stream=True).url.endswith("/models/gemini-2.5-flash:streamGenerateContent?alt=sse")


def test_query_of_the_url_is_kept():
    request = http(stream=True, profile={"url": "http://h/v1?a=1", "extra_query": {"b": "2"}})
    assert request.url == "http://h/v1/models/gemini-2.5-flash:streamGenerateContent?a=1&b=2&alt=sse"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/v1beta"),
        ("http://h/", "/v1beta"),
        ("http://h/v1", "/v1"),
        ("http://h/v1beta/models", "/v1beta"),
        ("http://h/v1beta/models/gemini-2.5-flash:generateContent", "/v1beta"),
        ("http://h/v1beta/models/gemini-2.5-flash:streamGenerateContent", "/v1beta"),
        (
            "http://h/v1/projects/p/locations/l/publishers/google",
            "/v1/projects/p/locations/l/publishers/google",
        ),
        (
            "http://h/v1/projects/p/locations/l/publishers/google/models/",
            "/v1/projects/p/locations/l/publishers/google",
        ),
    ],
)
def test_url_of_the_profile(url, path):
    assert http(profile={"url": url}).url == f"http://h{path}/models/gemini-2.5-flash:generateContent"


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("models/gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("publishers/google/models/x", "publishers/google/models/x"),
        ("vendor/name", "models/vendor/name"),
        ("name@001", "models/name@001"),
        ("a?b", "models/a%3Fb"),
    ],
)
def test_model_in_the_path(model, path):
    assert http(profile={"model": model, "url": "http://h"}).url == f"http://h/v1beta/{path}:generateContent"


def test_system_turns_become_the_system_instruction():
    sent = body([Turn("system", "Be brief."), Turn("user", "Hi"), Turn("system", "And kind.")])
    assert sent == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "And kind."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
    }


def test_conversation_without_a_user_turn_is_an_error():
    with pytest.raises(BadRequestError, match="user"):
        body([Turn("system", "Be brief.")])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_tokens": 50}, {"maxOutputTokens": 50}),
        ({"profile": {"max_tokens": 0}}, {}),
        ({"temperature": 0, "top_p": 0.5, "seed": 0}, {"temperature": 0, "topP": 0.5, "seed": 0}),
        ({"stop": ["a", "b"]}, {"stopSequences": ["a", "b"]}),
        ({"extra_body": {"generationConfig": {"topK": 5}}, "seed": 1}, {"seed": 1, "topK": 5}),
    ],
)
def test_option_is_spelt_as_gemini_does(options, expected):
    assert config(**options) == expected


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("models/gemini-2.5-pro", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        ("gemini-2.5-pro", "high", {"thinkingBudget": 24576, "includeThoughts": True}),
        ("gemini-3-flash-preview", "none", {"thinkingLevel": "minimal"}),
        ("gemini-3-flash-preview", "minimal", {"thinkingLevel": "minimal", "includeThoughts": True}),
        ("gemini-3.6-flash", "high", {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-flash-latest", "low", {"thinkingLevel": "low", "includeThoughts": True}),
    ],
)
def test_reasoning_effort_is_a_budget_or_a_level(model, effort, expected):
    assert config(model, reasoning_effort=effort) == {"thinkingConfig": expected}


@pytest.mark.parametrize(
    ("summary", "expected"), [("auto", {"thinkingConfig": {"includeThoughts": True}}), ("none", {})]
)
def test_reasoning_summary_asks_for_thoughts(summary, expected):
    assert config(profile={"reasoning_summary": summary}) == expected


def test_effort_that_a_model_cannot_be_told_is_an_error():
    with pytest.raises(UnsupportedOptionError, match="'extreme'"):
        body(reasoning_effort="extreme")


class City(TypedDict):
    name: str


def test_response_format_is_a_json_schema():
    sent = config(response_format=City)
    assert sent["responseMimeType"] == "application/json"
    assert sent["responseJsonSchema"]["properties"]["name"]["type"] == "string"


def test_json_without_a_schema():
    assert config(response_format={"type": "json_object"}) == {"responseMimeType": "application/json"}


def test_tools():
    assert rest(tools=[WEATHER]) == {"tools": [{"functionDeclarations": [DECLARED]}]}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        ("weather", {"mode": "ANY", "allowedFunctionNames": ["weather"]}),
    ],
)
def test_tool_choice(choice, expected):
    sent = body(tools=[WEATHER], tool_choice=choice)
    assert sent["toolConfig"] == {"functionCallingConfig": expected}


def test_strict_tool_has_its_calls_validated():
    strict = Tool("weather", "The weather.", WEATHER.parameters, strict=True)
    assert body(tools=[strict])["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED"}}


def test_choice_of_a_tool_that_is_not_offered_is_an_error():
    with pytest.raises(BadRequestError, match="'nope'"):
        body(tools=[WEATHER], tool_choice="nope")


def test_one_call_at_a_time_cannot_be_asked_for():
    with pytest.raises(UnsupportedOptionError, match="parallel_tool_calls"):
        body(tools=[WEATHER], parallel_tool_calls=False)


def test_parts_of_the_model_go_back_in_their_order():
    parts = ({"text": "First."}, THOUGHT, SIGNED, {"thoughtSignature": "eQ==", "text": ""})
    sent = body(answered(*parts, text="First."))["contents"]
    assert sent[1] == {"role": "model", "parts": list(parts)}


def test_result_of_a_call_without_an_id_has_none():
    assert body(answered(SIGNED))["contents"][2] == {
        "role": "user",
        "parts": [{"functionResponse": {"name": "weather", "response": {"output": "Sunny"}}}],
    }


def test_result_of_a_call_with_an_id_names_it():
    part = {"functionCall": {"name": "weather", "args": {}, "id": "g1"}}
    calls = (ToolCall("g1", "weather", {}),)
    response = body(answered(part, calls=calls))["contents"][2]["parts"][0]["functionResponse"]
    assert (response["id"], response["name"]) == ("g1", "weather")


def test_failed_result_is_an_error_in_the_response():
    sent = body(answered(SIGNED, is_error=True))["contents"][2]["parts"][0]["functionResponse"]
    assert sent["response"] == {"error": "Sunny"}


OWN_CALL = {"functionCall": {"name": "weather", "args": {"city": "Rome"}, "id": "made_up_1"}}


@pytest.mark.parametrize(
    "parts",
    [
        (),
        ({"type": "reasoning", "id": "rs_1", "encrypted_content": "x"},),
        ({"type": "thinking", "thinking": "Anthropic's", "signature": "x"},),
        ({"functionCall": {"name": "other", "args": {}}},),
        ({"text": "Other text."}, SIGNED),
    ],
    ids=["none", "responses", "anthropic", "other-call", "other-text"],
)
def test_parts_that_cannot_go_back_are_replaced_by_the_turn_itself(parts):
    sent = body(answered(*parts))["contents"]
    assert sent[1]["parts"] == [OWN_CALL]
    assert sent[2]["parts"][0]["functionResponse"]["id"] == "made_up_1"


def test_missing_signature_is_declared_to_models_that_check_it():
    unsigned = {"functionCall": SIGNED["functionCall"]}
    for parts in ((), (unsigned,)):
        sent = body(answered(*parts), profile={"model": "gemini-3-pro-preview"})
        assert sent["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


def test_signature_that_is_there_stays():
    sent = body(answered(SIGNED), profile={"model": "gemini-3-pro-preview"})
    assert sent["contents"][1]["parts"] == [SIGNED]


def test_results_of_one_round_share_a_content():
    calls = (ToolCall("a", "weather", {}), ToolCall("b", "clock", {}))
    turns = [
        Turn("user", "x"),
        Turn("assistant", "Both.", tool_calls=calls),
        Turn("tool", "1", tool_call_id="a"),
        Turn("tool", "2", tool_call_id="b"),
        Turn("user", "y"),
    ]
    contents = body(turns)["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert [part["functionResponse"]["name"] for part in contents[2]["parts"]] == ["weather", "clock"]
    assert contents[1]["parts"][0] == {"text": "Both."}


def test_reused_call_id_belongs_to_the_call_before_it():
    turns = [
        Turn("user", "x"),
        Turn("assistant", "", tool_calls=(ToolCall("a", "first", {}),)),
        Turn("tool", "1", tool_call_id="a"),
        Turn("assistant", "", tool_calls=(ToolCall("a", "second", {}),)),
        Turn("tool", "2", tool_call_id="a"),
    ]
    contents = body(turns)["contents"]
    assert contents[4]["parts"][0]["functionResponse"]["name"] == "second"


def test_result_without_a_call_or_a_name_is_an_error():
    with pytest.raises(BadRequestError, match="'nope'"):
        body([Turn("user", "x"), Turn("tool", "y", tool_call_id="nope")])


def test_images_and_files_are_parts():
    parts = [
        TextPart("See"),
        ImagePart(data=b"\x89", media_type="image/png"),
        ImagePart(url="https://h/a.jpg?x=1"),
        ImagePart(url="data:image/gif;base64,R0lG"),
        FilePart(url="gs://bucket/a.pdf"),
        FilePart(url="https://youtu.be/x", media_type="video/mp4"),
        FilePart(file_id="https://h/v1beta/files/1", media_type="audio/mpeg"),
    ]
    assert body([Turn("user", parts)])["contents"][0]["parts"] == [
        {"text": "See"},
        {"inlineData": {"mimeType": "image/png", "data": "iQ=="}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://h/a.jpg?x=1"}},
        {"inlineData": {"mimeType": "image/gif", "data": "R0lG"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://bucket/a.pdf"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}},
        {"fileData": {"mimeType": "audio/mpeg", "fileUri": "https://h/v1beta/files/1"}},
    ]


def test_image_in_a_result_stands_beside_its_response():
    turns = answered(SIGNED)
    turns[2] = Turn("tool", [TextPart("This"), ImagePart(data=b"\x89")], tool_call_id="made_up_1")
    response = body(turns)["contents"][2]["parts"][0]["functionResponse"]
    assert response["response"] == {"output": "This"}
    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "iQ=="}}]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_tokens": 10, "temperature": 0.3, "stop": ["x"], "seed": 1, "reasoning_effort": "low"},
        {"tools": [WEATHER], "tool_choice": "required"},
        {"conversation": answered(SIGNED), "tools": [WEATHER]},
    ],
)
def test_streamed_body_is_the_same(options):
    assert http(stream=True, **options).body == http(**options).body


def test_list_of_models():
    protocol = Gemini()
    profile = ModelProfile(provider="gemini", url="http://h/v1beta/models", api_key="AIza-key")
    assert protocol.encode_models(profile, GEMINI).url == "http://h/v1beta/models?pageSize=1000"
    listed = {"models": [{"name": "models/gemini-2.5-flash"}, {"name": "tunedModels/x"}]}
    assert protocol.decode_models(json.dumps(listed).encode()) == ["gemini-2.5-flash", "tunedModels/x"]
