"""Errors of Google's APIs: https://cloud.google.com/apis/design/errors.

What matters beyond the status stands in `details`: a wrong key is a 400 with the reason
API_KEY_INVALID, and how long to wait is a `retryDelay`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lmclient.errors import AuthenticationError, BadRequestError, ProviderError
from lmclient.protocols import provider_errors
from lmclient.protocols.base import as_dict, as_str

Json = dict[str, Any]


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The exception for a response with an error status."""
    error = provider_errors.error_from_body(status, headers, body)
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return error
    if isinstance(data, list) and data:  # the error of a stream stands in a list
        data = data[0]
    return _with_details(error, as_dict(as_dict(data).get("error")))


def error_of(error: object) -> ProviderError:
    """The exception for an error inside a successful response."""
    if not isinstance(error, dict):
        return provider_errors.error_from_object({"message": str(error)})
    return _with_details(provider_errors.error_from_object(error), error)


def _with_details(error: ProviderError, said: Json) -> ProviderError:
    details = said.get("details")
    for detail in map(as_dict, details if isinstance(details, list) else ()):
        if detail.get("reason") == "API_KEY_INVALID" and isinstance(error, BadRequestError):
            error = AuthenticationError(
                str(error), status=error.status, code="API_KEY_INVALID", request_id=error.request_id
            )
        if (wait := _seconds(as_str(detail.get("retryDelay")))) is not None:
            error.retry_after = wait
    return error


def _seconds(duration: str) -> float | None:
    """The seconds of a duration such as "38.5s", as protobuf writes it in JSON."""
    number = duration.removesuffix("s")
    if number == duration or not number.replace(".", "", 1).isdecimal():
        return None
    return float(number)
