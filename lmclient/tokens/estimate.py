"""A cheap guess at the tokens of a request, for what must be decided before it is sent."""

from __future__ import annotations

from collections.abc import Sequence

from lmclient.core.conversation import Conversation
from lmclient.core.tools import Tool
from lmclient.tokens.fallback import FallbackTokenizer
from lmclient.tokens.messages import overhead, texts

WHOLE = 8192
"""Characters up to which a text is counted in whole; of a longer one samples are."""
_SAMPLE = 512
_count = FallbackTokenizer().count


def estimate_tokens(conversation: Conversation, tools: Sequence[Tool] = ()) -> int:
    """The tokens of a conversation and its tools, as exact as the tokenizer "fallback" is.

    Takes at most a millisecond for each text, however long it is.
    """
    return overhead(conversation) + sum(map(_estimate, texts(conversation, tools)))


def _estimate(text: str) -> int:
    if len(text) <= WHOLE:
        return _count(text)
    samples = WHOLE // _SAMPLE
    step = (len(text) - _SAMPLE) / (samples - 1)
    counted = sum(_count(text[int(n * step) : int(n * step) + _SAMPLE]) for n in range(samples))
    return round(counted * len(text) / WHOLE)
