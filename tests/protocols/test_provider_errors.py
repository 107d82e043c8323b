"""Which exception an error of a provider becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmclient import errors
from lmclient.protocols.provider_errors import error_from_body, error_from_object


def of_body(status: int, body: Any, **headers: str) -> errors.ProviderError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_from_body(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequestError),
        (401, errors.AuthenticationError),
        (402, errors.QuotaExceededError),
        (403, errors.PermissionDeniedError),
        (404, errors.NotFoundError),
        (405, errors.BadRequestError),
        (408, errors.ServerError),
        (409, errors.ServerError),
        (413, errors.BadRequestError),
        (418, errors.BadRequestError),
        (422, errors.BadRequestError),
        (429, errors.RateLimitError),
        (500, errors.ServerError),
        (503, errors.ServerError),
        (529, errors.ServerError),
        (599, errors.ServerError),
    ],
)
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"[]", b"<html></html>", b'{"error":null}', b"\xff\xfe"]
)
def test_the_status_decides_whatever_the_body(
    status: int, kind: type[errors.ProviderError], body: bytes
) -> None:
    error = of_body(status, body)
    assert (type(error), error.status) == (kind, status)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"error": {"message": "m"}}, "m"),
        ({"error": "m"}, "m"),
        ({"message": "m"}, "m"),
        ({"detail": "m"}, "m"),
        ({"detail": [{"msg": "m1"}]}, "m1"),
        ([{"error": {"message": "m"}}], "m"),
        ({"error": {"message": {"text": "m2"}}}, "m2"),
        ({"error": {"message": None, "code": 5}}, "no message"),
        ({"error": {"message": "a\nb\r\n\tc"}}, "a b c"),
        (b"<html><head><TITLE> Bad\n gateway </TITLE></head></html>", "Bad gateway"),
        (b"plain words", "plain words"),
        (b"x" * 5000, "x" * 100),
        ({"error": {"message": "outer", "metadata": {"raw": "inner"}}}, "outer: inner"),
        ({"error": {"message": ""}}, "no message"),
    ],
)
def test_the_providers_sentence_stands_in_the_message(body: Any, says: str) -> None:
    error = of_body(400, body)
    assert says in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 400


def test_a_message_without_end_is_cut() -> None:
    assert len(str(of_body(400, {"error": {"message": "x" * 100_000}}))) < 3000


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "m", "code": 429}, errors.RateLimitError, 429),
        ({"message": "m", "code": "429"}, errors.RateLimitError, 429),
        ({"message": "m", "code": 502}, errors.ServerError, 502),
        ({"message": "m", "code": 401}, errors.AuthenticationError, 401),
        ({"message": "m", "status": 503}, errors.ServerError, 503),
        ({"message": "m", "type": "overloaded_error"}, errors.ServerError, 529),
        ({"message": "m", "type": "server_error"}, errors.ServerError, 500),
        ({"message": "m", "type": "rate_limit_error"}, errors.RateLimitError, 429),
        ({"message": "m", "type": "invalid_request_error"}, errors.BadRequestError, 400),
        (
            {"message": "m", "type": "invalid_request_error", "code": "invalid_api_key"},
            errors.AuthenticationError,
            401,
        ),
        ({"message": "m", "code": "rate_limit_exceeded"}, errors.RateLimitError, 429),
        ({"message": "m", "code": "insufficient_quota"}, errors.QuotaExceededError, 429),
        ({"message": "m", "code": "content_filter"}, errors.ContentFilterError, None),
        ({"message": "m", "code": "context_length_exceeded"}, errors.ContextLengthError, 400),
        ({"message": "m", "code": "model_not_found"}, errors.NotFoundError, 404),
        ({"message": "m", "code": True}, errors.ProviderError, None),
        ({"message": "m", "code": 200}, errors.ProviderError, None),
        ({"message": "m", "code": 1.5}, errors.ProviderError, None),
        ({}, errors.ProviderError, None),
    ],
)
def test_an_error_inside_an_answer_is_as_typed_as_one_with_a_status(
    error: dict[str, Any], kind: type[errors.ProviderError], status: int | None
) -> None:
    """B06"""
    made = error_from_object(error)
    assert type(made) is kind
    if kind not in (errors.QuotaExceededError, errors.ContextLengthError):
        assert made.status == status


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "context_length_exceeded", "message": "m"}},
        {"error": {"message": "This model's maximum context length is 8192 tokens. However, you ..."}},
        {"error": {"type": "exceed_context_size_error", "message": "m", "n_ctx": 512}},
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000"}},
        {
            "error": {
                "status": "INVALID_ARGUMENT",
                "message": "The input token count (2000000) exceeds the ...",
            }
        },
    ],
)
def test_a_prompt_that_is_too_long_is_a_class_of_its_own(body: Any) -> None:
    assert type(of_body(400, body)) is errors.ContextLengthError


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "content_filter", "message": "m"}},
        {"error": {"code": "content_policy_violation", "message": "m"}},
        {
            "error": {
                "code": "content_filter",
                "message": "m",
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
    ],
)
def test_a_prompt_that_is_filtered_is_a_class_of_its_own(body: Any) -> None:
    assert type(of_body(400, body)) is errors.ContentFilterError


def test_what_a_support_request_needs_is_there() -> None:
    error = of_body(500, {"error": {"message": "m", "code": "c", "type": "t"}}, x_request_id="req_1")
    assert (error.code, error.request_id) == ("c", "req_1")


@pytest.mark.parametrize(("header", "retryable"), [("true", True), ("false", False)])
def test_the_providers_advice_is_kept(header: str, retryable: bool) -> None:
    assert of_body(500, {}, x_should_retry=header).retryable is retryable


def test_a_body_nested_without_end_is_shown_as_text() -> None:
    assert isinstance(of_body(400, b"[" * 100_000), errors.BadRequestError)
