"""What the headers of an answer say about the provider's own limits."""

from __future__ import annotations

import datetime
import math
import re
import time
from collections.abc import Mapping, Sequence

from lmclient.core.request import ProviderLimits
from lmclient.providers.retry_after import retry_after

# What remains, and when it grows again: OpenAI's ("Rate limits in headers"), which Groq and Azure send as
# well, Anthropic's ("Rate limits, Response headers"), Cerebras' for two windows of time, those of Together
# and OpenRouter, and the RateLimit fields of an IETF draft. Mistral's name no time, so nothing follows.
_REQUESTS = {
    "x-ratelimit-remaining-requests": "x-ratelimit-reset-requests",
    "anthropic-ratelimit-requests-remaining": "anthropic-ratelimit-requests-reset",
    "x-ratelimit-remaining-requests-minute": "x-ratelimit-reset-requests-minute",
    "x-ratelimit-remaining-requests-day": "x-ratelimit-reset-requests-day",
    "x-ratelimit-remaining": "x-ratelimit-reset",
    "ratelimit-remaining": "ratelimit-reset",
}
_TOKENS = {
    "x-ratelimit-remaining-tokens": "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-tokens-remaining": "anthropic-ratelimit-tokens-reset",
    "x-ratelimit-remaining-tokens-minute": "x-ratelimit-reset-tokens-minute",
    "x-ratelimit-remaining-tokens-day": "x-ratelimit-reset-tokens-day",
    "x-tokenlimit-remaining": "x-tokenlimit-reset",
}
_SOME_TOKENS = {
    "anthropic-ratelimit-input-tokens-remaining": "anthropic-ratelimit-input-tokens-reset",
    "anthropic-ratelimit-output-tokens-remaining": "anthropic-ratelimit-output-tokens-reset",
}
"""These count a part of the tokens of a call, so they say something only when nothing is left."""
_TELLING = (*_REQUESTS, *_TOKENS, *_SOME_TOKENS, "retry-after", "retry-after-ms")
_EPOCH = 1e9
"""A larger number is a time since 1970 (OpenRouter's), and one of more than a hundred times that is one in
milliseconds."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_SECONDS = (86_400.0, 3600.0, 60.0, 1.0, 0.001)


def provider_limits(headers: Mapping[str, str]) -> ProviderLimits | None:
    """What the headers say is left of the limits, None if they say nothing of the kind."""
    for name in _TELLING:
        if name in headers:
            return _limits(headers)
    return None


def _limits(headers: Mapping[str, str]) -> ProviderLimits:
    requests, requests_reset = _least(_stated(headers, _REQUESTS))
    used_up = [stated for stated in _stated(headers, _SOME_TOKENS) if stated[0] == 0]
    tokens, tokens_reset = _least([*_stated(headers, _TOKENS), *used_up])
    return ProviderLimits(
        remaining_requests=requests,
        requests_reset=requests_reset,
        remaining_tokens=tokens,
        tokens_reset=tokens_reset,
        retry_after=retry_after(headers),
    )


def _stated(headers: Mapping[str, str], names: Mapping[str, str]) -> list[tuple[int, float | None]]:
    """What remains of each limit that the headers tell of, with the seconds until there is more."""
    counts = [(_count(headers[name].strip()), reset) for name, reset in names.items() if name in headers]
    return [(count, _seconds(headers.get(reset, "").strip())) for count, reset in counts if count is not None]


def _least(stated: Sequence[tuple[int, float | None]]) -> tuple[int | None, float | None]:
    """The limit of which the least is left, and of those the one that has more last."""
    return min(stated, key=lambda limit: (limit[0], -(limit[1] or 0.0)), default=(None, None))


def _count(value: str) -> int | None:
    # A remainder below zero occurs: the provider let a burst pass.
    return max(0, int(value)) if re.fullmatch(r"-?\d{1,15}", value) else None


def _seconds(value: str) -> float | None:
    """Seconds from "1.5", "6m0s", "20ms", or a time in RFC 3339 or since 1970; None from anything else."""
    try:
        number = float(value)
    except ValueError:
        pass
    else:
        if number > _EPOCH:
            number = max(0.0, (number if number <= 100 * _EPOCH else number / 1000) - time.time())
        return number if math.isfinite(number) and number >= 0 else None
    duration = _DURATION.fullmatch(value)
    if value and duration is not None:
        return sum(float(part) * unit for part, unit in zip(duration.groups(), _SECONDS, strict=True) if part)
    try:
        date = datetime.datetime.fromisoformat(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        return None
    return max(0.0, (date - datetime.datetime.now(datetime.UTC)).total_seconds())
