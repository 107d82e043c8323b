"""What a provider itself says is left of its limits."""

from __future__ import annotations

from lmclient.core.request import ProviderLimits

LONGEST = 60.0
"""Seconds: a provider's word on a longer time does not hold calls back. They find out themselves."""


class ProviderAllowance:
    """What the provider's last answer left of its requests and tokens, and until when that holds.

    Takes the provider's word as it is, also where other processes use the same key.
    """

    def __init__(self) -> None:
        self._requests = self._tokens = 0
        self._requests_until = self._tokens_until = self._paused_until = 0.0

    def learn(self, said: ProviderLimits, failed: bool, now: float) -> None:
        """Takes in what an answer said; `failed` if it was an error."""
        requests, tokens = said.remaining_requests, said.remaining_tokens
        if requests is not None and _holds(said.requests_reset):
            self._requests, self._requests_until = requests, now + (said.requests_reset or 0.0)
        if tokens is not None and _holds(said.tokens_reset):
            self._tokens, self._tokens_until = tokens, now + (said.tokens_reset or 0.0)
        if failed and _holds(said.retry_after):
            self._paused_until = max(self._paused_until, now + (said.retry_after or 0.0))

    def active(self, now: float) -> bool:
        """Whether anything said still holds."""
        return now < max(self._requests_until, self._tokens_until, self._paused_until)

    def wait(self, tokens: int, now: float) -> float:
        """Seconds until the provider is ready for a request of so many tokens."""
        until = self._paused_until
        if self._requests < 1:
            until = max(until, self._requests_until)
        if self._tokens < max(tokens, 1):
            until = max(until, self._tokens_until)
        return max(0.0, until - now)

    def take(self, tokens: int) -> None:
        """Counts a request that is about to be sent."""
        self._requests -= 1
        self._tokens -= tokens


def _holds(seconds: float | None) -> bool:
    return seconds is not None and 0 < seconds <= LONGEST
