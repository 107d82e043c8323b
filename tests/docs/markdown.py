"""The code blocks of a Markdown page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^( *)```(\w*)(?: +title=\"([^\"]+)\")? *$")


class Block(NamedTuple):
    """A fenced block: its language, the file that its title names, its text, and where it stands."""

    language: str
    title: str | None
    code: str
    place: str
    """`page.md:12`, the line of the fence."""


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order. Raises `AssertionError` for a fence that is not understood."""
    blocks = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        if not line.lstrip().startswith("```"):
            continue
        place = f"{page.name}:{number}"
        fence = _FENCE.match(line)
        assert fence, f'{place}: {line!r} is not a fence of the form ```language title="file"'
        indent, language, title = fence.groups()
        code = []
        for _, inner in lines:
            if inner.strip() == "```":
                break
            code.append(inner.removeprefix(indent))
        blocks.append(Block(language, title, "\n".join(code) + "\n", place))
    return blocks
