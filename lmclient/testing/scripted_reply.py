"""One reply of a scripted model, and how it looks as an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from lmclient.core.completion import Chunk, Completion, FinishReason
from lmclient.core.request import CompletionRequest
from lmclient.core.tools import ToolCall
from lmclient.core.usage import Usage
from lmclient.spend.prices import price

if TYPE_CHECKING:
    from lmclient.testing.scripted_calls import ScriptedRequest

Answer = str | Exception | Callable[["ScriptedRequest"], str | Exception]
"""A text, an exception to raise, or a function from the request to either."""

When = str | Callable[["ScriptedRequest"], bool] | None
"""Text that the system prompt or the last user turn contains, or a predicate; None fits all."""

_WORDS = re.compile(r"\s*\S+|\s+")


class Reply(msgspec.Struct, kw_only=True):
    """What `ScriptedModel.reply` was given; `left` is the number of requests that may still get it."""

    answer: Answer
    when: When
    left: int | None
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: FinishReason | None
    usage: Usage | None
    error: Exception | None
    delay: float

    def completion(self, text: str, request: CompletionRequest) -> Completion:
        """The whole answer."""
        usage = self.usage or _words_as_tokens(request, text, self.reasoning)
        calls = tuple(_with_raw_arguments(call) for call in self.tool_calls)
        cost = price(usage, request.profile.cost)
        finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        return Completion(
            text=text,
            reasoning=self.reasoning,
            tool_calls=calls,
            finish_reason=self.finish_reason or finish,
            usage=usage,
            cost=cost,
            cost_source=None if cost is None else "profile",
            currency=request.profile.cost.currency,
            model=request.profile.model,
            profile=request.profile.name,
            category=request.category,
            id=f"scripted-{request.id}-{len(request.attempts)}",
            requests=len(request.attempts),
        )


def chunks_of(completion: Completion) -> list[Chunk]:
    """The answer word by word: the reasoning, the text, then the tool calls as a whole."""
    chunks = [Chunk(reasoning=word) for word in _WORDS.findall(completion.reasoning)]
    chunks += [Chunk(text=word) for word in _WORDS.findall(completion.text)]
    if completion.tool_calls:
        chunks.append(Chunk(tool_calls=completion.tool_calls))
    return chunks


def part_of(completion: Completion, chunks: list[Chunk]) -> Completion:
    """The answer as far as these chunks of it had arrived."""
    return msgspec.structs.replace(
        completion,
        text="".join(chunk.text for chunk in chunks),
        reasoning="".join(chunk.reasoning for chunk in chunks),
        tool_calls=tuple(call for chunk in chunks for call in chunk.tool_calls),
        finish_reason=FinishReason.UNKNOWN,
    )


def _words_as_tokens(request: CompletionRequest, text: str, reasoning: str) -> Usage:
    thought = len(reasoning.split())
    return Usage(
        input_tokens=sum(len(turn.text.split()) for turn in request.conversation.turns),
        output_tokens=len(text.split()) + thought,
        reasoning_tokens=thought,
    )


def _with_raw_arguments(call: ToolCall) -> ToolCall:
    if call.raw_arguments or call.arguments is None:
        return call
    raw = msgspec.json.encode(call.arguments).decode()
    return msgspec.structs.replace(call, raw_arguments=raw)
