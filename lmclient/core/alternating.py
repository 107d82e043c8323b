"""Turns for models whose template takes user and assistant only in alternation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lmclient.core.conversation import Part, Role, TextPart, Turn


def alternating(turns: Sequence[Turn]) -> list[Turn]:
    """The turns with one system turn at the head, and neighbours of one role joined.

    Texts are joined by a blank line. Turns of tools, turns with calls or provider items, and those of
    different names stay apart, for they mean something by themselves.
    """
    said: list[Turn] = []
    for turn in sorted(turns, key=lambda turn: turn.role is not Role.SYSTEM):
        if said and _may_join(said[-1], turn):
            said[-1] = _joined(said[-1], turn)
        else:
            said.append(turn)
    return said


def _may_join(first: Turn, second: Turn) -> bool:
    if any(turn.role is Role.TOOL or turn.tool_calls or turn.provider_items for turn in (first, second)):
        return False
    return (first.role, first.name) == (second.role, second.name)


def _joined(first: Turn, second: Turn) -> Turn:
    parts = (*_parts(first), *_parts(second))
    content: str | tuple[Part, ...] = parts
    if all(isinstance(part, TextPart) for part in parts):
        content = _paragraphs(first.text, second.text)
    reasoning = _paragraphs(first.reasoning, second.reasoning)
    return msgspec.structs.replace(first, content=content, reasoning=reasoning)


def _parts(turn: Turn) -> Sequence[Part]:
    return [TextPart(turn.content)] if isinstance(turn.content, str) else turn.content


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
