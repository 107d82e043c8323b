"""Errors in OpenAI's shape, with statuses and headers that OpenAI's clients understand."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from lmclient import (
    AuthenticationError,
    BadRequestError,
    BudgetExceededError,
    CircuitOpenError,
    ConfigurationError,
    ConnectError,
    ContentFilterError,
    ContextLengthError,
    ContextOverflowError,
    NotFoundError,
    PermissionDeniedError,
    ProtocolError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RateLimitTimeoutError,
    ServerError,
    Settings,
    StreamInterruptedError,
    TimeoutError,
    UnsupportedOptionError,
)
from lmclient.testing import ScriptedModel
from lmclient.ui.openai_errors import OpenAIError

HELLO = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnsupportedOptionError("x"), 400, "unsupported_parameter"),
        (ContextOverflowError("x"), 400, "context_length_exceeded"),
        (ContextLengthError("x", status=400), 400, "context_length_exceeded"),
        (ContentFilterError("x", status=400, code="content_policy"), 400, "content_policy"),
        (BadRequestError("x", status=422), 400, None),
        (BadRequestError("x", status=413, code="request_too_large"), 413, "request_too_large"),
        (AuthenticationError("x", status=401), 401, None),
        (PermissionDeniedError("x", status=403), 403, None),
        (NotFoundError("x", status=404), 404, "model_not_found"),
        (ProviderError("x", status=408), 408, None),
        (RateLimitError("x", status=429), 429, "rate_limit_exceeded"),
        (QuotaExceededError("x", status=429), 429, "insufficient_quota"),
        (RateLimitTimeoutError("x"), 429, "rate_limit_exceeded"),
        (BudgetExceededError("x"), 429, "budget_exceeded"),
        (ConfigurationError("x"), 500, "configuration_error"),
        (RuntimeError("x"), 500, None),
        (ServerError("x", status=500), 502, None),
        (ServerError("x", status=503), 503, None),
        (ServerError("x", status=529), 503, None),
        (ConnectError("x"), 502, "upstream_unreachable"),
        (StreamInterruptedError("x"), 502, "upstream_unreachable"),
        (ProtocolError("x"), 502, "upstream_protocol_error"),
        (CircuitOpenError("x"), 503, "circuit_open"),
        (TimeoutError("x"), 504, "timeout"),
    ],
)
def test_every_error_has_its_status(error: Exception, status: int, code: str | None) -> None:
    answer = OpenAIError(error)
    assert (answer.status, answer.body["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "error",
    [RateLimitError("x", status=429, retry_after=1.2), CircuitOpenError("x", retry_after=1.2)],
)
def test_retry_after_is_whole_seconds(error: Exception) -> None:
    assert OpenAIError(error).headers == {"retry-after": "2"}


@pytest.mark.parametrize("error", [BudgetExceededError("x"), ServerError("x", status=500), TimeoutError("x")])
def test_what_the_chain_has_tried_already_is_not_to_be_repeated(error: Exception) -> None:
    assert OpenAIError(error).headers == {"x-should-retry": "false"}


def test_an_unexpected_error_tells_only_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "lmclient.ui"):
        body = OpenAIError(RuntimeError("secret detail")).body
    assert "secret detail" not in json.dumps(body)
    assert "secret detail" in caplog.text


def test_the_sdk_raises_its_own_classes(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply(RateLimitError("Too fast.", status=429, retry_after=3), times=None)
    with pytest.raises(openai.RateLimitError, match="Too fast") as caught:
        client.chat.completions.create(model="m", messages=HELLO)
    assert caught.value.response.headers["retry-after"] == "3"


def test_an_error_before_the_stream_has_a_status(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply(PermissionDeniedError("Not for you.", status=403))
    with pytest.raises(openai.PermissionDeniedError, match="Not for you"):
        client.chat.completions.create(model="m", messages=HELLO, stream=True)


def test_an_error_in_mid_stream_is_an_event(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("one two", error=StreamInterruptedError("The line broke."))
    got = []
    chunks = client.chat.completions.create(model="m", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError, match="The line broke"):
        got.extend(chunk.choices[0].delta.content for chunk in chunks)
    assert got == ["", "one", " two"]


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nope"):
        client.chat.completions.create(model="nope", messages=HELLO)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"messages": []}, "empty"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "wizard"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"n": 2}, "n is 2"),
        ({"functions": []}, "tools"),
        ({"tools": [{"type": "custom"}]}, "tools"),
        ({"tool_choice": "required"}, "tools"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
    ],
)
def test_a_wrong_field_is_named(client: openai.OpenAI, wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(openai.BadRequestError, match=named):
        client.chat.completions.create(**{"model": "m", "messages": HELLO, **wrong})


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_body_that_is_no_request(url: str, body: bytes) -> None:
    answer = httpx2.post(f"{url}/chat/completions", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/nothing", 404), ("GET", "/v1/chat/completions", 405)]
)
def test_a_wrong_path_or_method(url: str, method: str, path: str, status: int) -> None:
    answer = httpx2.request(method, url.removesuffix("/v1") + path)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, "invalid_request_error")


@pytest.mark.parametrize(
    ("scenario", "status"),
    [("unauthorized", 401), ("bad_request", 400), ("not_found_model", 404), ("bad_gateway_html", 502)],
)
def test_a_providers_errors_are_passed_on_without_its_key(
    serve: Callable[[Settings], str], fault_settings: Callable[..., Settings], scenario: str, status: int
) -> None:
    url = serve(fault_settings(scenario, f"gateway-{scenario}"))
    answer = httpx2.post(f"{url}/chat/completions", json={"model": "m", "messages": HELLO})
    assert answer.status_code == status
    assert "sk-upstream-secret" not in answer.text + str(answer.headers)
    assert "Traceback" not in answer.text
