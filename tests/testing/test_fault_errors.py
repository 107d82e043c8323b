"""Scenarios of the fault provider: HTTP errors, redirects, and errors with status 200."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime

import pytest

from lmclient.testing.fault import PIECES, TEXT, USAGE

FEW = "".join(PIECES[:3])


@pytest.mark.parametrize(
    ("scenario", "header", "value"),
    [("rate_limited_once", "retry-after", "1"), ("rate_limited_ms", "retry-after-ms", "200")],
)
@pytest.mark.parametrize("endpoint", ["chat", "text", "models"])
def test_rate_limits_say_how_long_to_wait_once(ask, scenario, header, value, endpoint):
    first, second = ask(scenario, endpoint), ask(scenario, endpoint)
    assert (first.status, first.headers[header], second.status) == (429, value, 200)
    assert first.json["error"]["code"] == "rate_limit_exceeded"


def test_rate_limited_date_lies_one_to_two_seconds_ahead(ask):
    before = time.time()
    first = ask("rate_limited_date")
    assert before + 1 <= parsedate_to_datetime(first.headers["retry-after"]).timestamp() <= time.time() + 2
    assert ask("rate_limited_date").status == 200


def test_rate_limited_forever_never_recovers(ask):
    answers = [ask("rate_limited_forever") for _ in range(2)]
    assert [(a.status, a.headers["retry-after"]) for a in answers] == [(429, "3600")] * 2


def test_quota_exhausted_never_recovers(ask):
    answers = [ask("quota_exhausted") for _ in range(2)]
    assert [(a.status, a.json["error"]["code"]) for a in answers] == [(429, "insufficient_quota")] * 2


@pytest.mark.parametrize(
    ("scenario", "statuses"), [("server_error_once", [500, 200]), ("overloaded_twice", [529, 503, 200])]
)
def test_server_errors_recover(ask, scenario, statuses):
    assert [ask(scenario).status for _ in statuses] == statuses


def test_bad_gateway_html_is_a_page(ask):
    answer = ask("bad_gateway_html")
    assert (answer.status, answer.headers["content-type"]) == (502, "text/html; charset=utf-8")
    assert b"<title>502 Bad Gateway</title>" in answer.body


def test_unauthorized_repeats_the_key(ask):
    answer = ask("unauthorized", authorization="Bearer sk-planted")
    assert (answer.status, answer.json["error"]["code"]) == (401, "invalid_api_key")
    assert "sk-planted" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("scenario", "status", "code"),
    [("bad_request", 400, "context_length_exceeded"), ("not_found_model", 404, "model_not_found")],
)
def test_request_errors_concern_completions_only(ask, scenario, status, code):
    answer = ask(scenario)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert ask(scenario, "models").status == 200


def test_redirect_leads_to_ok_with_the_same_key(ask, request):
    answer = ask("redirect")
    assert (answer.status, answer.headers["location"]) == (
        307,
        f"/ok~{request.node.name}/v1/chat/completions",
    )


def test_cross_host_redirect_changes_the_host_name(ask, provider, request):
    location = ask("cross_host_redirect").headers["location"]
    assert location == f"http://localhost:{provider.port}/ok~{request.node.name}/v1/chat/completions"


@pytest.mark.parametrize("stream", [True, False])
def test_error_in_200_is_json_even_for_a_stream(ask, stream):
    answer = ask("error_in_200", stream=stream)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json["error"]["code"] == 502


def test_error_event_follows_two_chunks(ask):
    answer = ask("error_event")
    assert answer.text == "".join(PIECES[:2])
    assert answer.events[-1]["error"]["type"] == "server_error"


def test_malformed_event_stands_between_healthy_ones(ask):
    parts = ask("malformed_event").body.split(b"\n\n")
    assert len(parts) == 1 + 10 + 1 + 2 + 1 + 1  # role, pieces, broken, finish and usage, [DONE], nothing
    with pytest.raises(json.JSONDecodeError):
        json.loads(parts[4].removeprefix(b"data: "))


def test_malformed_event_without_stream_is_cut_json(ask):
    with pytest.raises(json.JSONDecodeError):
        _ = ask("malformed_event", stream=False).json


def test_empty_choices_has_usage_all_the_same(ask):
    answer = ask("empty_choices")
    assert answer.choices == []
    assert answer.events[-2]["usage"] == USAGE
    assert ask("empty_choices", stream=False).json["choices"] == []


def test_null_content_has_neither_text_nor_tool_calls(ask):
    assert ask("null_content", stream=False).json["choices"][0]["message"] == {
        "role": "assistant",
        "content": None,
    }
    assert ask("null_content").choices[0]["delta"]["content"] is None


@pytest.mark.parametrize("scenario", ["error_in_200", "empty_choices"])
def test_completion_scenarios_leave_models_alone(ask, scenario):
    assert ask(scenario, "models").json["data"][0]["id"] == "mock"


def test_healthy_text_is_the_documented_one():
    assert TEXT == "The quick brown fox jumps over the lazy dog."
