"""Requests of chat completions, byte for byte, and answers that no exchange shows."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from lmclient import (
    CompletionRequest,
    Conversation,
    ModelProfile,
    Options,
    ProtocolError,
    StreamInterruptedError,
    Tool,
    ToolCall,
    Turn,
    errors,
)
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.openai_chat import OpenAIChat, OpenAIChatDecoder
from lmclient.providers.dialects import dialect_for

WEATHER = Tool("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


def request_of(conversation: Any = "Hello", stream: bool = False, **values: Any) -> CompletionRequest:
    options = values.pop("options", {})
    profile = ModelProfile(**{"provider": "openai-chat", "model": "m", "url": "http://127.0.0.1", **values})
    return CompletionRequest(
        profile=profile,
        conversation=Conversation.of(conversation),
        options=Options(**options),
        stream=stream,
    )


def body_of(request: CompletionRequest, dialect: Dialect | None = None) -> dict[str, Any]:
    chosen = dialect or dialect_for("openai-chat", request.profile.url)
    body: dict[str, Any] = json.loads(OpenAIChat().encode(request, chosen).body)
    return body


# Requests


def test_the_smallest_request() -> None:
    assert body_of(request_of()) == {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(
    "model", ["vendor/name:free", "ft:gpt:org::id", "a b", "models/x", "ä", "@cf/meta/x"]
)
def test_the_model_is_sent_as_it_is(model: str) -> None:
    """I08"""
    assert body_of(request_of(model=model))["model"] == model


def test_roles_are_made_to_alternate_where_the_profile_says_so() -> None:
    """J02"""
    said = [("system", "A"), ("user", "B"), ("user", "C"), ("assistant", "D"), ("system", "E")]
    talk = Conversation([Turn(role, text) for role, text in said])
    as_is = body_of(request_of(talk))["messages"]
    joined = body_of(request_of(talk, roles="alternating"))["messages"]
    assert [(message["role"], message["content"]) for message in as_is] == said
    assert [(message["role"], message["content"]) for message in joined] == [
        ("system", "A\n\nE"),
        ("user", "B\n\nC"),
        ("assistant", "D"),
    ]


OPTION_SETS: list[dict[str, Any]] = [
    {},
    {"tools": [WEATHER]},
    {"tools": [WEATHER], "tool_choice": "weather"},
    {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False},
    {"temperature": 0.0, "top_p": 0.5, "max_tokens": 7, "stop": ("a", "b"), "seed": 3},
    {"reasoning_effort": "high"},
    {"response_format": {"type": "object", "properties": {}}},
    {"extra_body": {"x": {"y": 1}}},
]


@pytest.mark.parametrize("options", OPTION_SETS)
def test_a_stream_asks_for_the_same_as_a_whole_answer(options: dict[str, Any]) -> None:
    """D10"""
    whole = body_of(request_of(options=options))
    streamed = body_of(request_of(options=options, stream=True))
    assert streamed.pop("stream") is True
    assert streamed.pop("stream_options") == {"include_usage": True}
    assert streamed == whole


def test_a_stated_zero_is_sent() -> None:
    body = body_of(request_of(options={"temperature": 0.0, "top_p": 0.0, "seed": 0}))
    assert (body["temperature"], body["top_p"], body["seed"]) == (0, 0, 0)


def test_a_zero_of_the_profile_is_sent() -> None:
    assert body_of(request_of(temperature=0))["temperature"] == 0


def test_the_calls_options_come_before_the_profiles() -> None:
    request = request_of(options={"max_tokens": 5, "temperature": 1.0}, max_tokens=50, temperature=0.1)
    assert {"max_tokens": 5, "temperature": 1.0}.items() <= body_of(request).items()


def test_no_token_limit_asks_for_the_servers_own() -> None:
    assert "max_tokens" not in body_of(request_of(options={"max_tokens": 0}, max_tokens=50))


def test_the_calls_extra_body_comes_before_the_profiles() -> None:
    body = body_of(request_of(options={"extra_body": {"a": 2, "model": "n"}}, extra_body={"a": 1, "b": 1}))
    assert (body["a"], body["b"], body["model"]) == (2, 1, "n")


@pytest.mark.parametrize(
    ("model", "sent"),
    [("gpt-4o", True), ("gpt-5-chat-latest", True), ("gpt-5-mini", False), ("o3", False), ("o4-mini", False)],
)
def test_openais_reasoning_models_get_no_temperature(model: str, sent: bool) -> None:
    request = request_of(model=model, url="https://api.openai.com/v1", temperature=0.2)
    assert ("temperature" in body_of(request)) == sent


def test_openai_calls_the_token_limit_otherwise() -> None:
    body = body_of(request_of(url="https://api.openai.com/v1", max_tokens=5))
    assert (body.get("max_completion_tokens"), "max_tokens" in body) == (5, False)


def test_mistral_gets_no_stream_options_and_its_own_seed() -> None:
    body = body_of(request_of(url="https://api.mistral.ai/v1", stream=True, options={"seed": 3}))
    assert ("stream_options" in body, body.get("random_seed"), "seed" in body) == (False, 3, False)


def test_a_tool_round_goes_back_as_openai_wants_it() -> None:
    call = ToolCall("x1", "weather", {"city": "Bern"}, '{"city":"Bern"}')
    turns = [
        Turn("user", "Hello"),
        Turn("assistant", "", reasoning="Hm.", tool_calls=[call]),
        Turn("tool", "sunny", tool_call_id="x1", name="weather"),
    ]
    _, assistant, tool = body_of(request_of(turns), Dialect())["messages"]
    assert assistant["tool_calls"] == [
        {"id": "x1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bern"}'}}
    ]
    assert (tool["role"], tool["tool_call_id"], tool["content"]) == ("tool", "x1", "sunny")
    assert "reasoning_content" not in assistant


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_in_a_tool_round_where_the_vendor_wants_it(field: Any) -> None:
    turns = [
        Turn("user", "Hello"),
        Turn("assistant", "", reasoning="Hm.", tool_calls=[ToolCall("x1", "weather", {}, "{}")]),
        Turn("assistant", "Hi", reasoning="So."),
    ]
    _, in_round, plain = body_of(request_of(turns), Dialect(replay_reasoning=field))["messages"]
    assert (in_round[field], field in plain) == ("Hm.", False)


def test_a_choice_that_is_no_tool_names_the_tools() -> None:
    with pytest.raises(errors.BadRequestError, match="'weather'"):
        body_of(request_of(options={"tools": [WEATHER], "tool_choice": "sun"}))


# Answers


def decoded(data: bytes, step: int = 0, **profile: Any) -> tuple[OpenAIChatDecoder, list[Any]]:
    """The decoder after the data, and the chunks that it gave."""
    decoder = OpenAIChat().decoder(request_of(stream=True, **profile), Dialect())
    chunks = []
    for start in range(0, len(data), step or max(len(data), 1)):
        chunks += decoder.feed(data[start : start + (step or len(data))])
    return decoder, chunks + decoder.finish()


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return b"data: " + msgspec.json.encode({"choices": [{"delta": delta, "finish_reason": finish}]}) + b"\n\n"


@pytest.mark.parametrize("step", [0, 1, 7])
def test_tags_in_the_text_are_reasoning_only_where_the_profile_asks(step: int) -> None:
    """C04"""
    data = event({"content": "<think>Let me.</th"}) + event({"content": "ink>Hi"}) + event({}, "stop")
    plain, _ = decoded(data, step)
    split, _ = decoded(data, step, reasoning_tags="think")
    assert (plain.answer.text, plain.answer.reasoning) == ("<think>Let me.</think>Hi", "")
    assert (split.answer.text.strip(), split.answer.reasoning.strip()) == ("Hi", "Let me.")


def test_tags_in_separate_reasoning_stay_although_the_profile_asks() -> None:
    """C04"""
    data = event({"reasoning_content": "a </think> b"}) + event({"content": "Hi"}) + event({}, "stop")
    decoder, _ = decoded(data, reasoning_tags="think")
    assert (decoder.answer.text, decoder.answer.reasoning) == ("Hi", "a </think> b")


def test_text_is_shown_at_once_beside_empty_calls() -> None:
    """B10"""
    decoder = OpenAIChat().decoder(request_of(stream=True), Dialect())
    chunks = decoder.feed(event({"content": "Hel", "tool_calls": [], "function_call": None}))
    assert [chunk.text for chunk in chunks] == ["Hel"]


def test_no_call_is_shown_before_the_end() -> None:
    """D08"""
    decoder = OpenAIChat().decoder(request_of(stream=True), Dialect())
    name = {"index": 0, "id": "x1", "function": {"name": "f", "arguments": ""}}
    rest = {"index": 0, "function": {"arguments": '{"p":1}'}}
    assert decoder.feed(event({"tool_calls": [name]})) == []
    assert decoder.feed(event({"tool_calls": [rest]})) == []
    assert decoder.feed(event({}, "tool_calls")) == []
    (chunk,) = decoder.finish()
    assert [(call.name, call.arguments) for call in chunk.tool_calls] == [("f", {"p": 1})]


def test_calls_and_text_are_shown_once() -> None:
    """D12: also where the last event repeats the message as a whole."""
    call = {"index": 0, "id": "x1", "function": {"name": "f", "arguments": "{}"}}
    data = event({"content": "One moment."}) + event({"tool_calls": [call]}) + event({}, "tool_calls")
    _, chunks = decoded(data + b"data: [DONE]\n\n")
    assert [chunk.text for chunk in chunks if chunk.text] == ["One moment."]
    assert sum(len(chunk.tool_calls) for chunk in chunks) == 1


def test_a_call_that_is_repeated_whole_is_one_call() -> None:
    """D12"""
    call = {"index": 0, "id": "x1", "function": {"name": "f", "arguments": '{"p":1}'}}
    decoder, _ = decoded(event({"tool_calls": [call]}) + event({"tool_calls": [call]}, "tool_calls"))
    assert [(one.name, one.arguments) for one in decoder.answer.tool_calls()] == [("f", {"p": 1})]


@pytest.mark.parametrize(
    "delta", [{}, {"content": "Hi"}, {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f"}}]}]
)
def test_a_stream_that_just_stops_is_interrupted(delta: dict[str, Any]) -> None:
    decoder, _ = decoded(event(delta))
    assert isinstance(decoder.failure, StreamInterruptedError)


def test_half_an_event_at_the_end_is_an_interruption() -> None:
    decoder, _ = decoded(event({"content": "Hi"}) + b'data: {"choices":[{"del')
    assert isinstance(decoder.failure, StreamInterruptedError)
    assert decoder.answer.text == "Hi"


def test_text_before_a_broken_event_is_not_lost() -> None:
    decoder, chunks = decoded(event({"content": "Hi"}) + b"data: {oops\n\n")
    assert isinstance(decoder.failure, ProtocolError)
    assert [chunk.text for chunk in chunks] == ["Hi"]


def test_an_emoji_cut_into_two_escapes_is_whole_again() -> None:
    r"""Some servers cut between the two halves of `😀`."""
    halves = rb'data: {"choices":[{"delta":{"content":"a\ud83d"}}]}' + b"\n\n"
    halves += rb'data: {"choices":[{"delta":{"content":"\ude00b"}}]}' + b"\n\n"
    decoder, _ = decoded(halves + event({}, "stop"))
    assert decoder.failure is None
    assert decoder.answer.text in ("a\U0001f600b", "a\ufffd\ufffdb")
    decoder.answer.text.encode()


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 5},
        {"content": {"a": 1}},
        {"content": [5, None, "x"]},
        {"reasoning": 5},
        {"reasoning_content": {"x": 1}},
        {"reasoning_details": "x"},
        {"reasoning_details": [5]},
        {"tool_calls": "x"},
        {"tool_calls": [5]},
        {"tool_calls": [{"function": 5}]},
        {"tool_calls": [{"index": "0", "id": 5, "function": {"name": 5, "arguments": 5}}]},
        {"tool_calls": [{"index": [1], "id": "x", "function": {"name": "f"}}]},
        {"function_call": 5},
        {"refusal": 5},
    ],
)
def test_fields_of_a_strange_type_break_nothing(delta: dict[str, Any]) -> None:
    decoder, _ = decoded(event(delta) + event({"content": "Hi"}) + event({}, "stop"))
    assert decoder.failure is None
    assert decoder.answer.text.endswith("Hi")


@pytest.mark.parametrize(
    "usage", [5, "x", [1], {"prompt_tokens": "x"}, {"prompt_tokens": -5}, {"prompt_tokens": None}]
)
def test_a_strange_usage_breaks_nothing(usage: Any) -> None:
    last = b"data: " + msgspec.json.encode({"choices": [], "usage": usage}) + b"\n\n"
    decoder, _ = decoded(event({"content": "Hi"}, "stop") + last)
    assert (decoder.failure, decoder.answer.text) == (None, "Hi")


@pytest.mark.parametrize("cost", [float("inf"), "free", True, -1])
def test_a_strange_cost_is_none(cost: Any) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": cost}
    last = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    decoder, _ = decoded(event({"content": "Hi"}, "stop") + last)
    assert decoder.answer.cost is None


def test_the_cost_is_that_of_the_last_usage() -> None:
    first, last = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.5}, {"prompt_tokens": 100}
    events = [json.dumps({"choices": [], "usage": usage}).encode() for usage in (first, last)]
    decoder, _ = decoded(event({"content": "Hi"}, "stop") + b"data: %b\n\ndata: %b\n\n" % tuple(events))
    assert decoder.answer.usage is not None
    assert decoder.answer.usage.input_tokens == 100
    assert decoder.answer.cost is None


def test_usage_beside_the_finish_reason_is_read() -> None:
    """Moonshot streams it in the choice."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}
    last = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    read = decoded(event({"content": "Hi"}) + last)[0].answer.usage
    assert read is not None
    assert (read.input_tokens, read.output_tokens) == (1000, 500)


def test_usage_beside_an_error_of_the_choice_is_read() -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "error", "error": {"message": "Not now", "code": 502}}
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    last = b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n"
    decoder, _ = decoded(event({"content": "Hi"}) + last)
    assert isinstance(decoder.failure, errors.ServerError)
    assert decoder.answer.usage is not None
    assert decoder.answer.usage.output_tokens == 500


def test_a_cost_without_counts_is_read() -> None:
    last = b"data: " + json.dumps({"choices": [], "usage": {"cost": 0.5}}).encode() + b"\n\n"
    answer = decoded(event({"content": "Hi"}, "stop") + last)[0].answer
    assert (answer.usage, answer.cost) == (None, Decimal("0.5"))


def test_models_are_read_from_both_shapes() -> None:
    protocol = OpenAIChat()
    assert protocol.decode_models(b'{"data":[{"id":"a"},{"id":"b"},{"name":"x"},5]}') == ["a", "b"]
    assert protocol.decode_models(b'[{"id":"a"}]') == ["a"]


@pytest.mark.parametrize("arguments", [[1], 5, True])
def test_arguments_that_are_no_object_are_kept_as_text(arguments: Any) -> None:
    """D07"""
    call = {"id": "x", "function": {"name": "f", "arguments": arguments}}
    decoder, _ = decoded(event({"tool_calls": [call]}, "tool_calls"))
    assert decoder.answer.tool_calls() == (ToolCall("x", "f", None, json.dumps(arguments)),)


@pytest.mark.parametrize("slots", [("0", "1"), (0.0, 1.0)])
def test_slots_of_another_type_keep_calls_apart(slots: Any) -> None:
    """D01"""
    pieces = [
        [
            {"index": slot, "id": f"x{slot}", "function": {"name": "f", "arguments": '{"a":'}}
            for slot in slots
        ],
        [{"index": slot, "function": {"arguments": "1}"}} for slot in slots],
    ]
    decoder, _ = decoded(b"".join(event({"tool_calls": piece}) for piece in pieces) + event({}, "tool_calls"))
    assert [call.arguments for call in decoder.answer.tool_calls()] == [{"a": 1}, {"a": 1}]


def test_calls_of_a_whole_message_are_one_each() -> None:
    """D05: also without ids, and where the first one is broken."""
    calls = [{"function": {"name": "f", "arguments": text}} for text in ('{"a":', '{"a":1}')]
    body = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    decoder, _ = decoded(json.dumps(body).encode())
    assert [call.arguments for call in decoder.answer.tool_calls()] == [None, {"a": 1}]


def test_an_error_beside_a_choice_is_an_error() -> None:
    """B06"""
    choice = {
        "delta": {"content": ""},
        "finish_reason": "error",
        "error": {"code": 502, "message": "Upstream"},
    }
    decoder, _ = decoded(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    assert isinstance(decoder.failure, errors.ServerError)


def test_spaces_around_done_are_no_event() -> None:
    decoder, _ = decoded(event({"content": "Hi"}, "stop") + b"data:  [DONE] \n\n")
    assert (decoder.ended, decoder.failure) == (True, None)


def test_an_event_nested_without_end_is_an_error_of_the_protocol() -> None:
    nested = b"[" * 100_000 + b"]" * 100_000
    decoder, _ = decoded(b'data: {"choices":[],"x":' + nested + b"}\n\n")
    assert isinstance(decoder.failure, ProtocolError)
