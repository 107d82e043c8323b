"""Which exception an error of a provider is: by status, else by the provider's own code or type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lmclient.errors import (
    AuthenticationError,
    BadRequestError,
    ContentFilterError,
    ContextLengthError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)

_BY_STATUS: dict[int, type[ProviderError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: QuotaExceededError,
    403: PermissionDeniedError,
    404: NotFoundError,
    413: BadRequestError,
    422: BadRequestError,
    429: RateLimitError,
}
_QUOTA = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "credit_balance_too_low",
    "insufficient_balance",
)
_CONTEXT = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_CONTEXT_SAID = (
    "maximum context length",
    "context_length_exceeded",
    "prompt is too long",
    "exceeds the maximum number of tokens",
    "exceeds the available context size",
    "input token count",
    "too many tokens in the prompt",
)
_FILTER = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation")
_BY_KIND: tuple[tuple[str, type[ProviderError], int], ...] = (
    ("overloaded", ServerError, 529),
    ("rate_limit", RateLimitError, 429),
    ("resource_exhausted", RateLimitError, 429),
    ("authentication", AuthenticationError, 401),
    ("invalid_api_key", AuthenticationError, 401),
    ("unauthenticated", AuthenticationError, 401),
    ("permission", PermissionDeniedError, 403),
    ("not_found", NotFoundError, 404),
    ("invalid", BadRequestError, 400),
    ("timeout", ServerError, 504),
    ("unavailable", ServerError, 503),
    ("server_error", ServerError, 500),
    ("api_error", ServerError, 500),
    ("internal", ServerError, 500),
)


LONGEST = 2000
"""Characters of a provider's sentence that are kept."""


def error_from_body(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The exception for a response with an error status, whatever stands in its body."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        data = None
    if isinstance(data, list) and data:
        data = data[0]  # Gemini wraps the error of a stream into a list
    error = data.get("error", data) if isinstance(data, dict) else None
    if isinstance(error, dict):
        outer = data if isinstance(data, dict) else {}
        return error_from_object(error, status=status, headers=headers, outer=outer)
    text = error if isinstance(error, str) else _visible(body)
    return _build(status, headers, text, code=None, kind="")


def error_from_object(
    error: Mapping[str, Any],
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    outer: Mapping[str, Any] | None = None,
) -> ProviderError:
    """The exception for an error object, such as one inside a stream.

    Without a `status` the object's own numeric code, or its type, decides.
    """
    code = error.get("code")
    kind = " ".join(str(error[key]) for key in ("type", "status") if isinstance(error.get(key), str))
    if status is None:
        status = _as_status(code) or _as_status(error.get("status"))
    message = error.get("message") or error.get("detail") or (outer or {}).get("message") or ""
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str) and raw:  # OpenRouter: what the provider behind it said
        message = f"{message}: {' '.join(raw.split())[:500]}"
    return _build(status, headers or {}, message, code=None if code is None else str(code), kind=kind)


def _build(
    status: int | None, headers: Mapping[str, str], message: str, *, code: str | None, kind: str
) -> ProviderError:
    message = " ".join(message[:LONGEST].split())
    cls, status = _class_of(status, code or "", kind, message)
    parts = (str(status or ""), code if code and code != str(status) else kind)
    label = " ".join(part for part in parts if part)
    should_retry = headers.get("x-should-retry")
    return cls(
        f"The provider answered {label or 'an error'}: {message or 'no message'}",
        status=status,
        code=code or kind or None,
        request_id=headers.get("x-request-id") or headers.get("request-id"),
        retryable=None if should_retry is None else should_retry == "true",
    )


def _class_of(
    status: int | None, code: str, kind: str, message: str
) -> tuple[type[ProviderError], int | None]:
    words = f"{code} {kind}".lower()
    said = message.lower()
    if any(word in words for word in _QUOTA) or "credit balance is too low" in said:
        return QuotaExceededError, status
    if status in (None, 400, 413, 422, 500):
        if any(word in words for word in _CONTEXT) or any(phrase in said for phrase in _CONTEXT_SAID):
            return ContextLengthError, status
        if any(word in words for word in _FILTER):
            return ContentFilterError, status
    if status is None:
        found = ((cls, known) for word, cls, known in _BY_KIND if word in words)
        return next(found, (ProviderError, None))
    if status >= 500 or status in (408, 409):
        return ServerError, status
    return _BY_STATUS.get(status, BadRequestError if status < 500 else ServerError), status


def _as_status(code: object) -> int | None:
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code <= 599 else None


def _visible(body: bytes) -> str:
    """What a person would read of a body that is not JSON: the title of an HTML page, or its start."""
    text = body[:4000].decode("utf-8", "replace")
    lower = text.lower()
    start, end = lower.find("<title>"), lower.find("</title>")
    if 0 <= start < end:
        return text[start + len("<title>") : end].strip()
    return " ".join(text.split())[:200]
