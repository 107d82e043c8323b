"""Handlers of plain text."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from lmclient.core.completion import Chunk, Completion
from lmclient.flows.handler import Handler

if TYPE_CHECKING:
    from lmclient.flows.context import AgentContext

Transform = Callable[[str], Any]
"""Makes of the text what is kept. Raises to have the model asked again."""

OnChunk = Callable[[Chunk, "AgentContext"], Any]
"""Told of each chunk after it was put into the context; may be async."""


class TextHandler(Handler):
    """Puts the text under `key` and the reasoning, if there is any, under `<key>_reasoning`.

    While the answer streams both grow chunk by chunk; `transform` is applied to the whole.
    """

    def __init__(self, key: str, transform: Transform | None = None, on_chunk: OnChunk | None = None) -> None:
        self._key = key
        self._transform = transform
        self._on_chunk = on_chunk
        self._text = ""
        self._reasoning = ""

    def fresh(self) -> Self:
        twin = copy.copy(self)
        twin._text = twin._reasoning = ""
        return twin

    def handle(self, completion: Completion, context: AgentContext) -> bool:
        text = completion.text
        context.set(self._key, text if self._transform is None else self._transform(text))
        _keep_reasoning(self._key, completion.reasoning, context)
        return True

    def on_chunk(self, chunk: Chunk, context: AgentContext) -> Any:
        if not self._text and not self._reasoning:  # what an earlier attempt left
            context.remove(self._key)
            _keep_reasoning(self._key, "", context)
        if chunk.text:
            self._text += chunk.text
            context.set(self._key, self._text)
        if chunk.reasoning:
            self._reasoning += chunk.reasoning
            _keep_reasoning(self._key, self._reasoning, context)
        return None if self._on_chunk is None else self._on_chunk(chunk, context)


class AccumulateTextHandler(Handler):
    """Adds the text at the end of the list under `key`."""

    def __init__(self, key: str, transform: Transform | None = None) -> None:
        self._key = key
        self._transform = transform

    def fresh(self) -> Self:
        return copy.copy(self)

    def handle(self, completion: Completion, context: AgentContext) -> bool:
        text = completion.text
        context.append(self._key, text if self._transform is None else self._transform(text))
        return True


def _keep_reasoning(key: str, reasoning: str, context: AgentContext) -> None:
    if reasoning:
        context.set(f"{key}_reasoning", reasoning)
    else:
        context.remove(f"{key}_reasoning")
