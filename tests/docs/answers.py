"""What the model behind the pages answers: the little that their stories need."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

RIVERS = "The Danube, the Rhine and the Elbe."

ARGUMENTS: dict[str, dict[str, Any]] = {
    "weather": {"city": "Vienna"},
    "add": {"a": 2, "b": 3},
}
"""With which arguments a tool is called, by its name."""

VALUES: dict[str, Any] = {
    "Recipe": {"name": "Pancakes", "minutes": 20, "ingredients": ["flour", "milk", "eggs"]},
    "River": {"name": "Danube", "length_km": 2850},
}
"""What is answered for a schema, by its title."""

TEXTS = {
    "red": "Red means stop.",
    "Summarise": "A short text about rivers.",
    "weather": "It is 18 degrees in Vienna, with light rain.",
}
"""What is answered to a last message with this word; RIVERS to any other."""


class Answer(NamedTuple):
    """A text, or the name of a tool to call."""

    text: str = ""
    tool: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        return ARGUMENTS[self.tool]


def answer(said: str, tools: list[str], *, after_tool: bool, schema: str) -> Answer:
    """The answer to a request whose last message is `said`."""
    if tools and not after_tool:
        return Answer(tool=tools[0])
    if after_tool:
        return Answer(TEXTS["weather"])
    if schema:
        return Answer(json.dumps(VALUES[schema]))
    return Answer(next((text for word, text in TEXTS.items() if word in said), RIVERS))
