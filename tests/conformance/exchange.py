"""Exchanges that were recorded from providers, or written for one rule, played through a client.

`shared/exchanges` beside the checkout holds the recorded ones, and a README that explains `expected`;
they are no part of the repository. The others stand in `tests/protocols/exchanges`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from lmclient import Chunk, Client, Completion, FinishReason, LMClientError, ModelProfile, ProviderError
from lmclient.testing import ReplayProvider

RECORDED = Path(__file__).parents[2].parent / "shared" / "exchanges"
OWN = Path(__file__).parents[1] / "protocols" / "exchanges"
COUNTS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
MISSING = f"the recorded exchanges ({RECORDED.parent.name}/{RECORDED.name}) are not beside the checkout"


@dataclass(frozen=True)
class RecordedExchange:
    """One file: what was asked, and what a client should make of the answer."""

    name: str
    path: str
    stream: bool
    expected: Mapping[str, Any]
    file: Path

    def __str__(self) -> str:
        return self.name

    def prefix(self, endpoint: str) -> list[str]:
        """What stands before the endpoint in the recorded path, in segments."""
        return [part for part in self.path.removesuffix(endpoint).split("/") if part]


def exchanges(directory: Path, pattern: str = "*.json") -> list[RecordedExchange]:
    """The exchanges of a directory, none if there is no such directory."""
    return [_read(file) for file in sorted(directory.glob(pattern))]


def _read(file: Path) -> RecordedExchange:
    data = json.loads(file.read_text(encoding="utf-8"))
    return RecordedExchange(data.get("name", file.stem), data["path"], data["stream"], data["expected"], file)


@dataclass
class Played:
    """What the caller of a client got: an answer, or an error and what had arrived before it."""

    completion: Completion
    error: LMClientError | None = None
    chunks: list[Chunk] = field(default_factory=list)


def play(
    client: Client, exchange: RecordedExchange, endpoint: str, *, split: int | None = None, **profile: Any
) -> Played:
    """The exchange through the client, streamed if it was recorded so, in pieces of `split` bytes."""
    chunks: list[Chunk] = []
    with ReplayProvider.running([json.loads(exchange.file.read_bytes())], split=split) as provider:
        url = provider.url(exchange.name, *exchange.prefix(endpoint))
        target = ModelProfile(**{"model": "asked", "api_key": "sk-test-0123456789", "url": url, **profile})
        try:
            if not exchange.stream:
                return Played(client.complete(target, "Hello"))
            with client.stream(target, "Hello") as stream:
                chunks += stream
            return Played(stream.completion, None, chunks)
        except LMClientError as error:
            return Played(error.partial or Completion(), error, chunks)


def as_expected(played: Played) -> dict[str, Any]:
    """What the caller got, in the words of `expected`."""
    completion, error = played.completion, played.error
    usage = completion.usage
    unknown = completion.finish_reason is FinishReason.UNKNOWN
    return {
        "text": completion.text,
        "reasoning": completion.reasoning,
        "tool_calls": [(call.name, call.arguments) for call in completion.tool_calls],
        "finish_reason": None if unknown else completion.finish_reason.value,
        "usage": None if usage.estimated else {count: getattr(usage, count) for count in COUNTS},
        "cost": completion.cost if completion.cost_source == "provider" else None,
        "error": None if error is None else getattr(error, "status", None),
    }


def expectation(exchange: RecordedExchange) -> dict[str, Any]:
    """`expected` in the form of `as_expected`, with lmclient's rule for the finish reason."""
    expected = exchange.expected
    finish = expected["finish_reason"]
    if finish == "stop" and expected["tool_calls"]:
        finish = "tool_calls"
    cost = expected["cost"]
    return {
        "text": expected["text"],
        "reasoning": expected["reasoning"],
        "tool_calls": [(call["name"], call["arguments"]) for call in expected["tool_calls"]],
        "finish_reason": finish,
        "usage": expected["usage"],
        "cost": None if cost is None else Decimal(str(cost)),
        "error": expected["error"] and expected["error"]["status"],
    }


def check(exchange: RecordedExchange, played: Played, *, whole: bool = True) -> None:
    """Compares all that `expected` says; `whole` where the body came in one piece or line by line."""
    expected, completion = exchange.expected, played.completion
    refused = played.error is not None and not played.chunks
    got, wanted = as_expected(played), expectation(exchange)
    if refused:  # nothing of an answer is there to compare
        got, wanted = {"error": got["error"]}, {"error": wanted["error"]}
    elif played.error is not None:  # its output is estimated
        got, wanted = got | {"usage": None}, wanted | {"usage": None}
    assert got == wanted
    check_error(expected["error"], played.error)
    if refused:
        return
    for said, call in zip(expected["tool_calls"], completion.tool_calls, strict=True):
        assert call.id == said["id"] if said["id"] else call.id
        assert call.raw_arguments == said.get("arguments_raw", call.raw_arguments)
    assert completion.model == (expected["model"] or "asked")
    if exchange.stream:
        check_chunks(played.chunks, completion, expected["chunks"] if whole else None)


def check_error(expected: Mapping[str, Any] | None, error: LMClientError | None) -> None:
    """The provider's sentence stands in the message."""
    if expected is None:
        assert error is None
        return
    assert isinstance(error, ProviderError)
    assert expected["message"] in str(error)


def check_chunks(chunks: Sequence[Chunk], completion: Completion, number: int | None) -> None:
    """The chunks are the answer; `number` of them show something."""
    assert "".join(chunk.text for chunk in chunks) == completion.text
    assert "".join(chunk.reasoning for chunk in chunks) == completion.reasoning
    assert sum((chunk.tool_calls for chunk in chunks), ()) == completion.tool_calls
    if number is not None:
        assert len([chunk for chunk in chunks if chunk.text or chunk.reasoning]) == number
