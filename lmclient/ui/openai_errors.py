"""Errors in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`, and their statuses.

https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

import math
from typing import Any

from lmclient.errors import (
    AuthenticationError,
    BadRequestError,
    BudgetExceededError,
    CircuitOpenError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    ContextOverflowError,
    LMClientError,
    NotFoundError,
    PermissionDeniedError,
    ProtocolError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RateLimitTimeoutError,
    TimeoutError,
    TransportError,
    UnsupportedOptionError,
)
from lmclient.ui.events import public_message

_RULES: tuple[tuple[type[LMClientError], int, str, str | None], ...] = (
    (ConfigurationError, 500, "server_error", "configuration_error"),
    (UnsupportedOptionError, 400, "invalid_request_error", "unsupported_parameter"),
    (ContextOverflowError, 400, "invalid_request_error", "context_length_exceeded"),
    (ContextLengthError, 400, "invalid_request_error", "context_length_exceeded"),
    (ContentFilterError, 400, "invalid_request_error", "content_filter"),
    (BadRequestError, 400, "invalid_request_error", None),
    (AuthenticationError, 401, "authentication_error", None),
    (PermissionDeniedError, 403, "permission_error", None),
    (NotFoundError, 404, "invalid_request_error", "model_not_found"),
    (QuotaExceededError, 429, "insufficient_quota", "insufficient_quota"),
    (RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (RateLimitTimeoutError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (BudgetExceededError, 429, "insufficient_quota", "budget_exceeded"),
    (CircuitOpenError, 503, "server_error", "circuit_open"),
    (TimeoutError, 504, "server_error", "timeout"),
    (TransportError, 502, "server_error", "upstream_unreachable"),
    (ProtocolError, 502, "server_error", "upstream_protocol_error"),
    (ProviderError, 502, "server_error", None),
)
"""By class, the first that fits: the status, OpenAI's type, and the code where the provider gave none."""
_PASSED_ON = {408: 408, 413: 413, 503: 503, 504: 504, 529: 503}
"""Statuses of a provider that mean the same to our own caller."""


class OpenAIError:
    """An error as OpenAI says it: the `status`, the JSON `body` and the `headers` of the answer."""

    def __init__(self, error: Exception) -> None:
        status, kind, code = 500, "server_error", None
        for cls, status_, kind_, code_ in _RULES:
            if isinstance(error, cls):
                status, kind, code = status_, kind_, code_
                break
        wait = None
        if isinstance(error, ProviderError):
            code = error.code or code
            wait = error.retry_after
            if status in (400, 502) and error.status is not None:
                status = _PASSED_ON.get(error.status, status)
        elif isinstance(error, CircuitOpenError):
            wait = error.retry_after
        self.status = status
        self.body: dict[str, Any] = {
            "error": {"message": public_message(error), "type": kind, "param": None, "code": code}
        }
        self.headers = _headers(error, status, wait)


def _headers(error: Exception, status: int, wait: float | None) -> dict[str, str]:
    """When to try again, as OpenAI's own clients read it.

    They repeat whatever is 429 or 5xx. The chain has done so already, and a budget does not grow.
    """
    if wait is not None and math.isfinite(wait) and wait >= 0:
        return {"retry-after": str(math.ceil(wait))}
    hopeless = isinstance(error, BudgetExceededError | QuotaExceededError) or status >= 500
    return {"x-should-retry": "false"} if hopeless else {}
