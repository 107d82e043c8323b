"""Message dicts of OpenAI's chat completions, read and written."""

from __future__ import annotations

from typing import Any

import pytest

from lmclient.core.conversation import Conversation, FilePart, ImagePart, Role, TextPart, Turn
from lmclient.core.messages import from_message, to_message, tool_call
from lmclient.core.tools import ToolCall
from lmclient.errors import BadRequestError


@pytest.mark.parametrize(
    "turn",
    [
        Turn("system", "be brief"),
        Turn("user", "hi", name="ann"),
        Turn("user", [TextPart("what is it?"), ImagePart(url="https://host/cat.png", detail="low")]),
        Turn("user", [ImagePart(data=b"\x89PNG", media_type="image/jpeg")]),
        Turn("user", [FilePart(data=b"%PDF", filename="a.pdf"), FilePart(file_id="file-1")]),
        Turn(
            "assistant",
            "",
            reasoning="hm",
            tool_calls=[ToolCall("1", "now", {"zone": "UTC"}, '{"zone":"UTC"}')],
        ),
        Turn("tool", "12:00", tool_call_id="1"),
    ],
    ids=lambda turn: turn.role,
)
def test_a_turn_survives_being_written_and_read(turn: Turn) -> None:
    assert from_message(to_message(turn), 0) == turn


def test_a_turn_with_calls_only_has_null_content() -> None:
    message = to_message(Turn("assistant", "", tool_calls=[ToolCall("1", "now", {})]))
    assert message["content"] is None


def test_a_call_whose_arguments_are_no_json_is_written_as_a_call_without_arguments() -> None:
    message = to_message(Turn("assistant", "", tool_calls=[ToolCall("1", "now", None, '{"a":')]))
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_the_developer_role_is_the_system_role() -> None:
    assert from_message({"role": "developer", "content": "x"}, 0).role is Role.SYSTEM


@pytest.mark.parametrize("content", [None, ""])
def test_missing_content_is_empty_text(content: Any) -> None:
    assert from_message({"role": "assistant", "content": content}, 0).content == ""


@pytest.mark.parametrize("raw", ["", " ", "null", "{}"])
def test_a_call_without_arguments_has_none_to_give(raw: str) -> None:
    assert tool_call("1", "now", raw).arguments == {}


@pytest.mark.parametrize("raw", ["[1]", "1", '{"a":', "zone"])
def test_arguments_that_are_no_object_are_none_and_kept_as_text(raw: str) -> None:
    call = tool_call("1", "now", raw)
    assert (call.arguments, call.raw_arguments) == (None, raw)


def test_arguments_that_are_already_decoded_are_kept() -> None:
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}],
    }
    assert from_message(message, 0).tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (5, "is 5"),
        ({"content": "x"}, "has the role None"),
        ({"role": "function", "content": "x"}, "has the role 'function'"),
        ({"role": ["user"], "content": "x"}, "has the role"),
        ({"role": "user", "content": 5}, "content is 5"),
        ({"role": "user", "content": [{"type": "video"}]}, "neither text, image_url nor file"),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}],
            },
            "base64",
        ),
        ({"role": "assistant", "tool_calls": 5}, "tool_calls is 5"),
        ({"role": "assistant", "tool_calls": [{"id": "1"}]}, "lacks an id or a function name"),
    ],
)
def test_what_is_no_message_is_named_with_its_position(message: Any, said: str) -> None:
    with pytest.raises(BadRequestError, match=r"Message 1\b.*" + said.replace("[", r"\[")):
        Conversation.from_messages([{"role": "user", "content": "hi"}, message])
