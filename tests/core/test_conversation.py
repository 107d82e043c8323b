"""Conversations: turns, tool rounds, rewinding, and what the clients accept as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation, FilePart, ImagePart, Role, TextPart, Turn
from lmclient.core.tools import ToolCall, ToolResult
from lmclient.errors import BadRequestError

CALLS = Completion(
    text="Let me see.",
    reasoning="hm",
    tool_calls=(ToolCall("1", "now", {}), ToolCall("2", "today", {})),
    provider_items=({"type": "reasoning"},),
)


def test_a_role_may_be_given_as_its_string() -> None:
    assert Turn("user", "hi").role is Role.USER


def test_a_role_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(BadRequestError, match=r"'robot'.*'assistant'"):
        Turn("robot", "hi")


@pytest.mark.parametrize("content", [5, None, ["text"], [{"type": "text"}]])
def test_content_that_is_neither_text_nor_parts_is_refused(content: Any) -> None:
    with pytest.raises(BadRequestError, match="content is a str or a list"):
        Turn("user", content)


def test_the_text_of_a_turn_leaves_out_its_other_parts() -> None:
    assert Turn("user", [TextPart("a"), ImagePart(url="u"), TextPart("b")]).text == "ab"


def test_create_puts_the_system_turn_first() -> None:
    turns = Conversation.create("hi", system="be brief").turns
    assert [(turn.role, turn.content) for turn in turns] == [("system", "be brief"), ("user", "hi")]


@pytest.mark.parametrize(
    "value",
    ["hi", Conversation.create("hi"), [Turn("user", "hi")], [{"role": "user", "content": "hi"}]],
    ids=["str", "Conversation", "Turns", "dicts"],
)
def test_the_clients_accept_four_forms(value: Any) -> None:
    assert Conversation.of(value) == Conversation.create("hi")


@pytest.mark.parametrize("value", [[], Conversation()])
def test_an_empty_conversation_is_refused(value: Any) -> None:
    with pytest.raises(BadRequestError, match="empty"):
        Conversation.of(value)


@pytest.mark.parametrize("value", [5, None, b"hi", {"role": "user", "content": "hi"}])
def test_what_is_no_conversation_is_refused(value: Any) -> None:
    with pytest.raises(BadRequestError):
        Conversation.of(value)


def test_turns_that_are_none_are_refused_with_their_number() -> None:
    with pytest.raises(BadRequestError, match="Turn 1 of a conversation is 'hi'"):
        Conversation([Turn("user", "hi"), "hi"])  # type: ignore[list-item]  # what is tested


def test_a_completion_is_appended_with_all_that_the_provider_wants_back() -> None:
    turn = Conversation.create("hi").append(CALLS).turns[-1]
    assert turn == Turn(
        "assistant",
        "Let me see.",
        reasoning="hm",
        tool_calls=CALLS.tool_calls,
        provider_items=CALLS.provider_items,
    )


def test_a_tool_round_adds_one_turn_per_result() -> None:
    conversation = Conversation.create("hi")
    conversation.add_tool_round(CALLS, [ToolResult("2", "Monday"), ToolResult("1", "late", is_error=True)])
    assert conversation.turns[2:] == [
        Turn("tool", "Monday", tool_call_id="2", name="today"),
        Turn("tool", "late", tool_call_id="1", name="now", is_error=True),
    ]


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([ToolResult("1", "x")], "'2' .today. has no result"),
        ([ToolResult("1", "x"), ToolResult("2", "x"), ToolResult("3", "x")], "no tool call with the id '3'"),
    ],
)
def test_a_tool_round_that_is_not_whole_changes_nothing(results: list[ToolResult], said: str) -> None:
    conversation = Conversation.create("hi")
    with pytest.raises(BadRequestError, match=said):
        conversation.add_tool_round(CALLS, results)
    assert conversation == Conversation.create("hi")


def test_rewind_drops_the_last_user_turn_and_its_whole_answer() -> None:
    conversation = Conversation.create("one", system="s").add("assistant", "1").add("user", "two")
    conversation.add_tool_round(CALLS, [ToolResult("1", "x"), ToolResult("2", "x")]).add("assistant", "2")
    assert [turn.text for turn in conversation.rewind().turns] == ["s", "one", "1"]


def test_rewind_without_a_user_turn_changes_nothing() -> None:
    conversation = Conversation([Turn("system", "s")])
    assert conversation.rewind().turns == [Turn("system", "s")]


def test_a_copy_is_independent() -> None:
    conversation = Conversation.create("hi")
    copy = conversation.copy().add("assistant", "hello")
    copy.metadata["a"] = 1
    assert conversation == Conversation.create("hi")


def test_an_image_is_read_from_a_path_with_its_media_type(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(b"\xff\xd8")
    assert ImagePart.from_path(tmp_path / "cat.jpg") == ImagePart(data=b"\xff\xd8", media_type="image/jpeg")


def test_a_file_is_read_from_a_path_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    part = FilePart.from_path(str(tmp_path / "a.pdf"))
    assert part == FilePart(data=b"%PDF", media_type="application/pdf", filename="a.pdf")


@pytest.mark.parametrize("part", [ImagePart, FilePart])
def test_a_part_without_anything_in_it_is_refused(part: type[ImagePart | FilePart]) -> None:
    with pytest.raises(BadRequestError, match="needs a url"):
        part()
