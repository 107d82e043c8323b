"""The exceptions of lmclient.

    LMClientError
    ├── ConfigurationError            settings, categories, extras
    │   └── ProfileError              .file .key .expected
    ├── UnsupportedOptionError        an option that the provider's protocol cannot carry
    ├── ContextOverflowError          .input_tokens .max_tokens .limit
    ├── TransportError                the network
    │   ├── ConnectError              no connection, or lost before an answer began
    │   ├── TimeoutError              also the builtin TimeoutError
    │   │   └── ConnectTimeoutError   also a ConnectError
    │   └── StreamInterruptedError    the answer stopped before its end; .partial
    ├── ProtocolError                 the server answered something that is not the protocol
    ├── ProviderError                 .status .code .provider .request_id .retry_after
    │   ├── AuthenticationError       401
    │   ├── PermissionDeniedError     403
    │   ├── NotFoundError             404
    │   ├── BadRequestError           400, 422, or found before sending
    │   │   └── ContextLengthError
    │   ├── RateLimitError            429
    │   │   └── QuotaExceededError    never retried
    │   ├── ContentFilterError
    │   └── ServerError               5xx, 529
    ├── BudgetExceededError
    ├── CircuitOpenError
    ├── RateLimitTimeoutError         our own limiter
    └── FlowError

Classes differ by what the caller does next. Facts are attributes; the message is one line that
says what happened, where, and what to do. All of them can be pickled.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmclient.core.completion import Completion


class LMClientError(Exception):
    """The base of every exception that lmclient raises on purpose.

    `partial` is the answer as far as it had arrived when the error struck, else None.
    """

    partial: Completion | None = None


class ConfigurationError(LMClientError):
    """Settings, a category, a profile or an installed extra do not allow the call."""


class ProfileError(ConfigurationError):
    """A profile is not usable: `file` and `key` say where, `expected` what should stand there."""

    def __init__(
        self, message: str, *, file: str | None = None, key: str | None = None, expected: str | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.key = key
        self.expected = expected


class UnsupportedOptionError(LMClientError):
    """The provider's protocol cannot carry an option of the call. Nothing was sent."""


class ContextOverflowError(LMClientError):
    """The prompt and `max_tokens` do not fit into the model's context. Nothing was sent.

    `input_tokens`, `max_tokens` and `limit` are counts of tokens.
    """

    def __init__(self, message: str, *, input_tokens: int = 0, max_tokens: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.input_tokens = input_tokens
        self.max_tokens = max_tokens
        self.limit = limit


class TransportError(LMClientError):
    """The network failed: the server could not be reached, or the connection broke."""


class ConnectError(TransportError):
    """No connection came about, or it was lost before the server began to answer."""


class TimeoutError(TransportError, builtins.TimeoutError):
    """A limit of the profile's `timeouts`, or the call's `timeout`, ran out."""


class ConnectTimeoutError(ConnectError, TimeoutError):
    """No connection within `timeouts.connect`. Nothing was sent, so it is safe to try again."""


class StreamInterruptedError(TransportError):
    """The answer stopped before its end. `partial` holds what had arrived."""


class ProtocolError(LMClientError):
    """The server answered something that is not the expected protocol."""


class ProviderError(LMClientError):
    """The provider refused or failed the request.

    `status` is the HTTP status (or the code inside an error event), `code` the provider's own
    error code, `provider` the name in the profile, `request_id` the provider's id for support
    requests, and `retry_after` the seconds that the provider asks to wait. Each may be None.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        provider: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.provider = provider
        self.request_id = request_id
        self.retry_after = retry_after
        self.retryable = retryable
        """What the provider itself said about retrying (`x-should-retry`), else None."""


class AuthenticationError(ProviderError):
    """401: the key is missing, wrong or expired."""


class PermissionDeniedError(ProviderError):
    """403: the key is known but not allowed to do this."""


class NotFoundError(ProviderError):
    """404: no such model or path."""


class BadRequestError(ProviderError):
    """400 or 422: the request itself is wrong; sending it again does not help.

    `status` is None where lmclient found the mistake before sending.
    """


class ContextLengthError(BadRequestError):
    """The provider says that the prompt is longer than the model's context."""


class RateLimitError(ProviderError):
    """429: too many requests or tokens; `retry_after` says how long to wait, in seconds."""


class QuotaExceededError(RateLimitError):
    """The account has no credit left. Waiting does not help, so it is never retried."""


class ContentFilterError(ProviderError):
    """The provider refused the prompt for its content."""


class ServerError(ProviderError):
    """5xx or 529: the provider failed or is overloaded."""


class BudgetExceededError(LMClientError):
    """A budget does not allow the call. Nothing was sent."""


class CircuitOpenError(LMClientError):
    """The profile failed repeatedly and rests; `retry_after` is the seconds until the next try."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimitTimeoutError(LMClientError):
    """Our own rate limiter could not admit the call in time. Nothing was sent."""


class FlowError(LMClientError):
    """A flow or one of its agents cannot go on."""
