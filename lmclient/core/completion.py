"""Answers: the chunks of a stream, and the whole."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal, TypeVar

import msgspec

from lmclient.core.tools import ToolCall
from lmclient.core.usage import Usage

T = TypeVar("T")
CostSource = Literal["profile", "provider", "price-list", "cache"]
_PIECE = 32
"""Characters of text in one chunk of an answer that is given as a stream again."""


class FinishReason(enum.StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALLS = "tool_calls"
    ERROR = "error"
    UNKNOWN = "unknown"
    """The server ended properly without naming a reason."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """What arrived since the last chunk. Tool calls come whole, once the model has finished."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One whole answer.

    `cost` is None where no price is known, in `currency`; `cost_source` says where it comes from.
    `duration` and `time_to_first_token` are seconds, the latter None where nothing was streamed.
    `requests` counts HTTP requests, 0 from the cache. `provider_items` are opaque parts that the
    provider wants back in the next turn. `metadata` holds what has no field of its own.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = FinishReason.UNKNOWN
    usage: Usage = Usage()
    cost: Decimal | None = None
    cost_source: CostSource | None = None
    currency: str = "USD"
    model: str = ""
    profile: str = ""
    category: str | None = None
    id: str = ""
    provider_items: tuple[dict[str, Any], ...] = ()
    requests: int = 0
    duration: float = 0.0
    time_to_first_token: float | None = None
    cached: bool = False
    metadata: dict[str, Any] = {}

    def parse(self, model: type[T]) -> T:
        """The text as a value of `model`: a pydantic model, msgspec Struct, dataclass or TypedDict.

        Raises `ProtocolError` if the text is not such a value, or was cut off.
        """
        from lmclient.core.structured import parse_completion

        return parse_completion(self, model)


def chunks_of(completion: Completion) -> Iterator[Chunk]:
    """The answer as a stream has it: reasoning, then text, in pieces, then the calls."""
    for start in range(0, len(completion.reasoning), _PIECE):
        yield Chunk(reasoning=completion.reasoning[start : start + _PIECE])
    for start in range(0, len(completion.text), _PIECE):
        yield Chunk(text=completion.text[start : start + _PIECE])
    if completion.tool_calls:
        yield Chunk(tool_calls=completion.tool_calls)
