"""What the headers of an answer say about the provider's own limits."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping

from lmclient.core.request import ProviderLimits
from lmclient.providers.retry_after import retry_after

# OpenAI ("Rate limits in headers"), and with the same names Groq, Cerebras, Together and Azure; the
# last of each pair is Anthropic's ("Rate limits, Response headers"), with a time as its reset.
_REQUESTS = ("x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining")
_REQUESTS_RESET = ("x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset")
_TOKENS = ("x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining")
_TOKENS_RESET = ("x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset")
_TELLING = (*_REQUESTS, *_TOKENS, "retry-after", "retry-after-ms")
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_SECONDS = (86_400.0, 3600.0, 60.0, 1.0, 0.001)


def provider_limits(headers: Mapping[str, str]) -> ProviderLimits | None:
    """What the headers say is left of the limits, None if they say nothing of the kind."""
    for name in _TELLING:
        if name in headers:
            return _limits(headers)
    return None


def _limits(headers: Mapping[str, str]) -> ProviderLimits:
    return ProviderLimits(
        remaining_requests=_count(_first(headers, _REQUESTS)),
        requests_reset=_seconds(_first(headers, _REQUESTS_RESET)),
        remaining_tokens=_count(_first(headers, _TOKENS)),
        tokens_reset=_seconds(_first(headers, _TOKENS_RESET)),
        retry_after=retry_after(headers),
    )


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((headers[name] for name in names if name in headers), "").strip()


def _count(value: str) -> int | None:
    # A remainder below zero occurs: the provider let a burst pass.
    return max(0, int(value)) if re.fullmatch(r"-?\d{1,15}", value) else None


def _seconds(value: str) -> float | None:
    """Seconds from "1.5", "6m0s", "20ms" or an RFC 3339 time; None from anything else."""
    try:
        number = float(value)
    except ValueError:
        pass
    else:
        return number if math.isfinite(number) and number >= 0 else None
    duration = _DURATION.fullmatch(value)
    if value and duration is not None:
        return sum(float(part) * unit for part, unit in zip(duration.groups(), _SECONDS, strict=True) if part)
    try:
        time = datetime.datetime.fromisoformat(value)
    except ValueError:
        return None
    if time.tzinfo is None:
        return None
    return max(0.0, (time - datetime.datetime.now(datetime.UTC)).total_seconds())
