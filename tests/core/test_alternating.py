"""Turns in alternation."""

from __future__ import annotations

import pytest

from lmclient import ImagePart, TextPart, ToolCall, Turn
from lmclient.core.alternating import alternating

IMAGE = ImagePart(url="https://example.org/a.png")
CALL = ToolCall("1", "f", {})


def test_neighbours_are_joined_with_their_reasoning() -> None:
    answers = [Turn("assistant", "a", reasoning="x"), Turn("assistant", [TextPart("b")], reasoning="y")]
    assert alternating(answers) == [Turn("assistant", "a\n\nb", reasoning="x\n\ny")]


def test_parts_that_are_no_text_stay_in_their_order() -> None:
    turns = [Turn("user", "See:"), Turn("user", [IMAGE, TextPart("What is it?")])]
    assert alternating(turns) == [Turn("user", [TextPart("See:"), IMAGE, TextPart("What is it?")])]


def test_a_system_turn_goes_to_the_head_and_its_neighbours_meet() -> None:
    turns = [Turn("user", "a"), Turn("system", "s"), Turn("user", "b")]
    assert alternating(turns) == [Turn("system", "s"), Turn("user", "a\n\nb")]


@pytest.mark.parametrize(
    "turns",
    [
        [Turn("assistant", "I look."), Turn("assistant", "", tool_calls=[CALL])],
        [Turn("tool", "1", tool_call_id="1"), Turn("tool", "2", tool_call_id="2"), Turn("user", "a")],
        [Turn("assistant", "a", provider_items=[{"type": "thinking"}]), Turn("assistant", "b")],
        [Turn("user", "a", name="ann"), Turn("user", "b", name="ben")],
    ],
)
def test_turns_that_mean_something_by_themselves_stay_apart(turns: list[Turn]) -> None:
    assert alternating(turns) == turns
