"""Scenarios of the fault provider: slow, silent and lost connections."""

from __future__ import annotations

import time

import pytest

from lmclient.testing.fault import PIECES, TEXT, USAGE

FEW = "".join(PIECES[:3])


def test_ok_streams_the_role_ten_pieces_finish_usage_and_done(ask):
    answer = ask("ok")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [choice["delta"].get("content") for choice in answer.choices] == ["", *PIECES, None]
    assert answer.finish == ["stop"]
    assert answer.events[-2]["usage"] == USAGE
    assert answer.events[-2]["choices"] == []
    assert answer.events[-1] == "[DONE]"


def test_ok_without_stream_is_one_completion(ask):
    answer = ask("ok", stream=False)
    assert answer.json["choices"][0]["message"] == {"role": "assistant", "content": TEXT}
    assert answer.json["usage"] == USAGE


def test_ok_has_text_completions(ask):
    assert ask("ok", "text", stream=False).json["choices"][0]["text"] == TEXT
    assert "".join(choice["text"] for choice in ask("ok", "text").choices) == TEXT


def test_ok_offers_one_model(ask):
    assert [model["id"] for model in ask("ok", "models").json["data"]] == ["mock"]


def test_slow_first_byte_is_silent_for_two_seconds(ask):
    started = time.monotonic()
    assert ask("slow_first_byte").text == TEXT
    assert time.monotonic() - started >= 2


@pytest.mark.parametrize("stream", [True, False])
def test_slow_stream_pauses_between_writes(ask, stream):
    started = time.monotonic()
    answer = ask("slow_stream", stream=stream)
    assert time.monotonic() - started >= 10 * 0.05
    assert (answer.text if stream else answer.json["choices"][0]["message"]["content"]) == TEXT


@pytest.mark.parametrize("endpoint", ["chat", "models"])
def test_hang_never_answers(ask, endpoint):
    with pytest.raises(TimeoutError):
        ask("hang", endpoint, timeout=0.2)


def test_hang_mid_stream_falls_silent(ask):
    with pytest.raises(TimeoutError):
        ask("hang_mid_stream", timeout=0.2)


def test_drip_writes_byte_by_byte(ask):
    started = time.monotonic()
    answer = ask("drip")
    assert answer.text == FEW
    assert time.monotonic() - started >= len(answer.body) * 0.001


def test_reset_before_headers_is_a_reset_in_place_of_an_answer(ask):
    answer = ask("reset_before_headers")
    assert (answer.status, answer.end) == (0, "reset")


def test_reset_mid_stream_comes_after_three_chunks(ask):
    answer = ask("reset_mid_stream")
    assert (answer.status, answer.text, answer.end) == (200, FEW, "reset")


def test_reset_mid_stream_without_stream_cuts_the_body(ask):
    answer = ask("reset_mid_stream", stream=False)
    assert (answer.status, answer.end) == (200, "reset")
    assert answer.body.startswith(b'{"id"')


def test_truncated_stream_ends_cleanly_without_finish_or_done(ask):
    answer = ask("truncated_stream")
    assert (answer.text, answer.end, answer.finish) == (FEW, "whole", [])
    assert "[DONE]" not in answer.events


def test_no_done_is_complete_but_for_done(ask):
    answer = ask("no_done")
    assert (answer.text, answer.finish, answer.events[-1]["usage"]) == (TEXT, ["stop"], USAGE)


@pytest.mark.parametrize("stream", [True, False])
def test_truncated_json_promises_twice_what_it_sends(ask, stream):
    answer = ask("truncated_json", stream=stream)
    assert answer.end == "cut"
    assert int(answer.headers["content-length"]) // 2 == len(answer.body)


@pytest.mark.parametrize("stream", [True, False])
def test_http10_close_has_no_length(ask, stream):
    answer = ask("http10_close", stream=stream)
    assert "content-length" not in answer.headers
    assert "transfer-encoding" not in answer.headers
    assert (answer.text if stream else answer.json["choices"][0]["message"]["content"]) == TEXT


@pytest.mark.parametrize("scenario", ["truncated_stream", "no_done", "duplicate_finish"])
def test_stream_only_scenarios_are_healthy_without_stream(ask, scenario):
    assert ask(scenario, stream=False).json["choices"][0]["message"]["content"] == TEXT
