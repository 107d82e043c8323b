"""How long a provider asks to wait."""

from __future__ import annotations

import datetime
import email.utils
import math
from collections.abc import Mapping


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the headers `retry-after-ms` or `retry-after` (seconds or a date) ask to wait.

    None where there is neither, or nothing sensible. The form in milliseconds is OpenAI's; the
    other is RFC 9110, section 10.2.3.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        date = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # the latter from a time zone of many digits
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=datetime.UTC)
    return max(0.0, (date - datetime.datetime.now(datetime.UTC)).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
