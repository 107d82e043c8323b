"""Templates: user prompts with placeholders for the values of a context.

    {{{key}}}         the value as JSON
    {{key}}           the values, joined by a blank line
    [[key]]           one branch for each value, with the value inserted
    [[key|hidden]]    one branch for each value, with nothing inserted

What was inserted is never looked at again.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from lmclient.errors import FlowError
from lmclient.flows.context import AgentContext

_KEY = r"[ \t]*(\w(?:[\w .:/@#$-]*\w)?)[ \t]*"
_PLACEHOLDER = re.compile(
    rf"\{{\{{\{{{_KEY}\}}\}}\}}|\{{\{{{_KEY}\}}\}}|\[\[{_KEY}(\|[ \t]*hidden[ \t]*)?\]\]"
)


class _Placeholder(NamedTuple):
    key: str
    kind: str
    """"json", "text", "branch" or "hidden"."""


class Prompt(NamedTuple):
    """What a template gives for a context: the text of each branch, and the values they differ in."""

    texts: Sequence[str]
    columns: dict[str, list[Any]]

    @property
    def branched(self) -> bool:
        """Whether the template asks for branches, be it for one or none."""
        return bool(self.columns)


def expand(template: str, context: AgentContext, agent: str, *, with_text: bool = True) -> Prompt:
    """The prompts of a template; `with_text=False` only splits, and the texts are empty.

    The shortest of the branched lists counts. Raises `FlowError` naming the key and the agent where
    a placeholder's key is missing or cannot be written as JSON.
    """
    parts = _parse(template)
    keys = [part for part in parts if isinstance(part, _Placeholder)]
    for part in keys:
        if part.key not in context and (with_text or part.kind in ("branch", "hidden")):
            raise FlowError(
                f"Agent {agent!r}: its template needs {part.key!r}, which the context does not have; "
                f"it has {', '.join(map(repr, context.keys())) or 'no keys'}."
            )
    columns = {part.key: context.get_all(part.key) for part in keys if part.kind in ("branch", "hidden")}
    count = min(map(len, columns.values())) if columns else 1
    if not with_text:
        return Prompt([""] * count, columns)
    pieces = [part if isinstance(part, str) else _constant(part, context, agent) for part in parts]
    return Prompt([_text(pieces, columns, number) for number in range(count)], columns)


@functools.lru_cache(maxsize=256)
def _parse(template: str) -> tuple[str | _Placeholder, ...]:
    return tuple(_parts(template))


def _parts(template: str) -> Iterator[str | _Placeholder]:
    end = 0
    for match in _PLACEHOLDER.finditer(template):
        yield template[end : match.start()]
        as_json, as_text, branched, hidden = match.groups()
        if branched:
            yield _Placeholder(branched, "hidden" if hidden else "branch")
        else:
            yield _Placeholder(as_json or as_text, "json" if as_json else "text")
        end = match.end()
    yield template[end:]


def _constant(part: _Placeholder, context: AgentContext, agent: str) -> str | _Placeholder:
    """What is the same in all branches is inserted once."""
    if part.kind == "json":
        value = context.get(part.key) if context.is_single(part.key) else context.get_all(part.key)
        try:
            return json.dumps(value, ensure_ascii=False, default=_plain)
        except (TypeError, ValueError) as error:
            raise FlowError(f"Agent {agent!r}: {part.key!r} cannot be written as JSON: {error}.") from error
    if part.kind == "text":
        return "\n\n".join(map(_shown, context.get_all(part.key)))
    return part


def _text(pieces: Sequence[str | _Placeholder], columns: dict[str, list[Any]], number: int) -> str:
    inserted = []
    for piece in pieces:
        if isinstance(piece, str):
            inserted.append(piece)
        elif piece.kind == "branch":
            inserted.append(_shown(columns[piece.key][number]))
    return "".join(inserted)


def _shown(value: Any) -> str:
    """A value as it stands in a prompt: dicts and lists as JSON, everything else as its `str`."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return str(value)


def _plain(value: Any) -> Any:
    """A value that `json` does not know, as one that it does. Raises `TypeError` if there is none."""
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return msgspec.to_builtins(value)
