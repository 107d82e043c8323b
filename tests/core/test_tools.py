"""Tools made of functions."""

from __future__ import annotations

import pytest

from lmclient.core.tools import Tool


def weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    Args:
        city: Its name.
    """
    return f"{city} {days}"


def test_a_function_becomes_a_tool() -> None:
    assert Tool.from_function(weather) == Tool(
        "weather",
        "The weather in a city.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Its name."},
                "days": {"type": "integer", "default": 1},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    )


def test_a_function_that_a_model_cannot_call_becomes_none() -> None:
    def anything(*values: int) -> None: ...

    with pytest.raises(TypeError, match="anything"):
        Tool.from_function(anything)
