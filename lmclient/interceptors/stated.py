"""What a request says of its answer: how long it may be, and how many of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from lmclient.core.request import CompletionRequest

_Path = tuple[str, ...]
_LIMITS: tuple[_Path, ...] = (
    *(("max_tokens",), ("max_completion_tokens",), ("max_output_tokens",), ("n_predict",)),
    *(("generationConfig", "maxOutputTokens"), ("options", "num_predict")),
)
"""How an `extra_body` may limit the answer."""
_ANSWERS: tuple[_Path, ...] = (("n",), ("best_of",), ("generationConfig", "candidateCount"))
"""How it may ask for several."""


def stated_limits(request: CompletionRequest) -> list[int]:
    """The limits of the answer's tokens, which may be said in several places; 0 is said, but no limit."""
    own = request.profile.max_tokens if request.options.max_tokens is None else request.options.max_tokens
    return [*([own] if own else []), *_stated(request, _LIMITS)]


def stated_answers(request: CompletionRequest) -> int:
    """How many answers are asked for."""
    return max((1, *_stated(request, _ANSWERS)))


def _stated(request: CompletionRequest, paths: Sequence[_Path]) -> Iterator[int]:
    """What the bodies of the profile and the call say there."""
    for body in (request.profile.extra_body, request.options.extra_body):
        for path in paths if body else ():
            found: Any = body
            for name in path:
                if not isinstance(found, dict) or name not in found:
                    break
                found = found[name]
            else:
                yield _number(found)


def _number(value: Any) -> int:
    """The number that servers may read there; 0, which is no limit, if it is none."""
    try:
        return max(0, math.ceil(float(value)))
    except (TypeError, ValueError, OverflowError):
        return 0
