"""Scenarios of the fault provider: encoding, volume, finish reasons, usage and tool calls."""

from __future__ import annotations

import gzip
import http.client
import json
from collections import defaultdict

import pytest

from lmclient.testing.fault import (
    BAD_ARGUMENTS,
    HUGE_SIZE,
    INVALID_UTF8_TEXT,
    MANY,
    PIECES,
    TEXT,
    TOOL_CALLS,
    UNICODE_TEXT,
    USAGE,
)

FEW = "".join(PIECES[:3])


def fragments(answer):
    return [call for c in answer.choices for call in c["delta"].get("tool_calls", [])]


def test_keepalive_comments_uses_what_the_sse_standard_allows(ask):
    body = ask("keepalive_comments").body
    for feature in (
        b": ping\r\n",
        b"\r\n\r\n\r\n\r\n",
        b"event: ping\r\n",
        b"retry: 3000\r\n",
        b"data:{",
        b"data:  ",
    ):
        assert feature in body


def test_keepalive_comments_without_stream_starts_with_blank_lines(ask):
    answer = ask("keepalive_comments", stream=False)
    assert answer.body.startswith(b"\n\n\n{")
    assert answer.json["usage"] == USAGE


@pytest.mark.parametrize("stream", [True, False])
def test_bom_utf8_starts_with_a_byte_order_mark(ask, stream):
    assert ask("bom_utf8", stream=stream).body.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("stream", [True, False])
def test_split_utf8_arrives_as_the_unicode_text(ask, stream):
    answer = ask("split_utf8", stream=stream)
    assert (answer.text if stream else answer.json["choices"][0]["message"]["content"]) == UNICODE_TEXT


def test_split_utf8_cuts_characters_between_http_chunks(provider):
    connection = http.client.HTTPConnection("127.0.0.1", provider.port)
    body = json.dumps({"model": "m", "stream": True, "prompt": "Hi"})
    connection.request("POST", "/split_utf8~cuts/v1/completions", body, {"connection": "close"})
    raw = connection.sock.makefile("rb").read()
    connection.close()
    assert b"\xf0\x9f\x8c\x8a" not in raw  # the wave emoji is never in one piece


@pytest.mark.parametrize("stream", [True, False])
def test_invalid_utf8_holds_a_lone_latin_1_byte(ask, stream):
    answer = ask("invalid_utf8", stream=stream)
    answer.body = answer.body.decode("utf-8", "replace").encode()
    assert (answer.text if stream else answer.json["choices"][0]["message"]["content"]) == INVALID_UTF8_TEXT


@pytest.mark.parametrize("stream", [True, False])
def test_gzip_is_compressed(ask, stream):
    answer = ask("gzip", stream=stream)
    assert answer.headers["content-encoding"] == "gzip"
    answer.body = gzip.decompress(answer.body)
    assert (answer.text if stream else answer.json["choices"][0]["message"]["content"]) == TEXT


@pytest.mark.parametrize(
    ("stream", "content_type"), [(True, "application/json"), (False, "text/plain; charset=utf-8")]
)
def test_wrong_content_type_lies(ask, stream, content_type):
    assert ask("wrong_content_type", stream=stream).headers["content-type"] == content_type


def test_huge_chunk_is_one_event(ask):
    answer = ask("huge_chunk")
    assert max(len(choice["delta"].get("content") or "") for choice in answer.choices) == HUGE_SIZE


def test_many_chunks_counts(ask):
    assert ask("many_chunks").text == "".join(f"{number} " for number in range(MANY))


@pytest.mark.parametrize("scenario", ["content_filter", "length"])
def test_early_finish_reasons_follow_three_chunks(ask, scenario):
    answer = ask(scenario)
    assert (answer.text, answer.finish) == (FEW, [scenario])
    assert ask(scenario, stream=False).json["choices"][0]["finish_reason"] == scenario


def test_duplicate_finish_says_stop_twice(ask):
    assert ask("duplicate_finish").finish == ["stop", "stop"]


def test_late_text_after_finish_has_the_whole_text(ask):
    answer = ask("late_text_after_finish")
    assert answer.text == TEXT
    assert answer.choices[-1]["delta"]["content"] == PIECES[-1]


def test_usage_every_chunk_is_cumulative(ask):
    events = ask("usage_every_chunk").events[:-1]
    assert [event["usage"]["completion_tokens"] for event in events] == [*range(11), 10]


def test_usage_with_choices_has_a_choice_beside_usage(ask):
    last = ask("usage_with_choices").events[-2]
    assert last["usage"] == USAGE
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]


def test_usage_none_has_no_usage(ask):
    assert not any("usage" in event for event in ask("usage_none").events[:-1])
    assert "usage" not in ask("usage_none", stream=False).json


def test_usage_null_fields_has_null_details(ask):
    events = ask("usage_null_fields").events[:-1]
    assert {event["usage"] is None for event in events[:-1]} == {True}
    assert events[-1]["usage"]["prompt_tokens_details"] is None


def test_tool_call_stream_interleaves_two_calls_by_index(ask):
    answer = ask("tool_call_stream")
    parts = fragments(answer)
    arguments = defaultdict(str)
    for part in parts:
        arguments[part["index"]] += part["function"]["arguments"]
    assert list(arguments.values()) == [call.arguments for call in TOOL_CALLS]
    assert [part["index"] for part in parts] == [0, 1] * 6
    assert answer.finish == ["tool_calls"]


def test_tool_call_stream_without_stream_has_both_calls(ask):
    message = ask("tool_call_stream", stream=False).json["choices"][0]["message"]
    assert [call["id"] for call in message["tool_calls"]] == [call.id for call in TOOL_CALLS]


def test_tool_call_no_index_names_only_the_first_fragment_of_a_call(ask):
    parts = fragments(ask("tool_call_no_index"))
    assert not any("index" in part for part in parts)
    assert [part.get("id") for part in parts] == ["call_1", *[None] * 4, "call_2", *[None] * 4]


def test_tool_call_bad_json_is_not_json(ask):
    arguments = "".join(part["function"]["arguments"] for part in fragments(ask("tool_call_bad_json")))
    assert arguments == BAD_ARGUMENTS
    with pytest.raises(json.JSONDecodeError):
        json.loads(arguments)


def test_tool_calls_do_not_concern_text_completions(ask):
    assert ask("tool_call_stream", "text", stream=False).json["choices"][0]["text"] == TEXT
