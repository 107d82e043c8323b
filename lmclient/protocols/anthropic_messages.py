"""Turns as the messages of Anthropic's API.

https://docs.anthropic.com/en/api/messages, fields `messages` and `system`: roles alternate, so that
neighbours of one role are merged; results of tools are blocks of the user's message; the system's
turns stand outside the messages, wherever they were in the conversation.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from lmclient.core.conversation import Conversation, FilePart, ImagePart, Part, Role, TextPart, Turn
from lmclient.errors import BadRequestError, UnsupportedOptionError

Json = dict[str, Any]

WHOLE_CONTENT = "anthropic.content"
"""The type of a provider item that holds all blocks of an answer in their order.

It is needed where thinking or the tools that Anthropic runs itself stand between text and calls.
Otherwise the thinking blocks are items of their own, and precede what the turn says.
"""

_FOREIGN_ID = re.compile(r"[^a-zA-Z0-9_-]")
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?;base64,", re.IGNORECASE)


def encode_system(conversation: Conversation) -> str:
    """What all system turns say, joined by blank lines. Raises `UnsupportedOptionError` for images."""
    turns = [turn for turn in conversation.turns if turn.role is Role.SYSTEM]
    for turn in turns:
        if not isinstance(turn.content, str) and any(not isinstance(part, TextPart) for part in turn.content):
            raise UnsupportedOptionError("Anthropic's API takes only text in a system turn.")
    return "\n\n".join(turn.text for turn in turns if turn.text)


def encode_messages(conversation: Conversation) -> list[Json]:
    """The messages; turns that say nothing are left out, since the API refuses empty text.

    Raises `BadRequestError` if none is left, and for a tool's turn without the id of its call;
    `UnsupportedOptionError` for content that the API cannot carry.
    """
    messages: list[Json] = []
    for turn in conversation.turns:
        if turn.role is Role.SYSTEM:
            continue
        role = "assistant" if turn.role is Role.ASSISTANT else "user"
        content = _content(turn)
        if not content:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] = _blocks(messages[-1]["content"]) + _blocks(content)
        else:
            messages.append({"role": role, "content": content})
    if not messages:
        raise BadRequestError("Anthropic needs a turn beside the system turn that says something; add one.")
    return messages


def _blocks(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _content(turn: Turn) -> str | list[Json]:
    if turn.role is Role.TOOL:
        return [_tool_result(turn)]
    if turn.role is Role.ASSISTANT and (turn.provider_items or turn.tool_calls):
        return _answer(turn)
    if isinstance(turn.content, str):
        return turn.content
    return _parts(turn.content)


def _parts(parts: Any) -> list[Json]:
    return [encode_part(part) for part in parts if not (isinstance(part, TextPart) and not part.text)]


def _tool_result(turn: Turn) -> Json:
    if not turn.tool_call_id:
        raise BadRequestError("A tool's turn has no tool_call_id; it must name the call that it answers.")
    result: Json = {
        "type": "tool_result",
        "tool_use_id": _id(turn.tool_call_id),
        "content": turn.content if isinstance(turn.content, str) else _parts(turn.content),
    }
    if turn.is_error:
        result["is_error"] = True
    return result


def _answer(turn: Turn) -> list[Json]:
    """An assistant's turn with what Anthropic wants back of it, unchanged."""
    thinking = []
    for item in turn.provider_items:
        if item.get("type") == WHOLE_CONTENT:
            blocks = [block for block in item["content"] if _may_go_back(block)]
            if _says_the_same(blocks, turn):
                return blocks
            thinking += [block for block in blocks if _is_thinking(block)]
        elif _is_thinking(item) and _may_go_back(item):
            thinking.append(item)
    calls = [
        {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": call.arguments or {}}
        for call in turn.tool_calls
    ]
    said = _blocks(turn.content) if isinstance(turn.content, str) else _parts(turn.content)
    return [*thinking, *(said if turn.content else ()), *calls]


def _is_thinking(block: Json) -> bool:
    return block.get("type") in ("thinking", "redacted_thinking")


def _may_go_back(block: Json) -> bool:
    """Whether the API accepts the block: thinking without its signature is refused."""
    return block.get("type") != "thinking" or bool(block.get("signature"))


def _says_the_same(blocks: list[Json], turn: Turn) -> bool:
    """Whether the turn still says what its blocks say, and has not been edited."""
    text = "".join(block["text"] for block in blocks if block.get("type") == "text")
    calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    return text == turn.text and calls == [call.id for call in turn.tool_calls]


def _id(id: str) -> str:
    """The id of a call with only the characters that are accepted: other providers use more."""
    return _FOREIGN_ID.sub("_", id)


def encode_part(part: Part) -> Json:
    """A part as a block: text, image or document. Raises `UnsupportedOptionError` for other files."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "image", "source": _source(part.url, part.data, part.media_type)}
    kind = "image" if part.media_type.startswith("image/") else "document"
    block: Json = {"type": kind, "source": _file_source(part)}
    if part.filename and kind == "document":
        block["title"] = part.filename
    return block


def _file_source(part: FilePart) -> Json:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    media_type = part.media_type
    if part.data is not None and media_type.startswith("text/"):
        return {"type": "text", "media_type": "text/plain", "data": part.data.decode("utf-8", "replace")}
    if part.data is not None and media_type != "application/pdf" and not media_type.startswith("image/"):
        raise UnsupportedOptionError(
            f"Anthropic's API takes PDF, text and images as files, not {media_type!r}."
        )
    return _source(part.url, part.data, media_type)


def _source(url: str | None, data: bytes | None, media_type: str) -> Json:
    if url is None:
        return {
            "type": "base64",
            "media_type": media_type,
            "data": base64.b64encode(data or b"").decode(),
        }
    if (inline := _DATA_URL.match(url)) is not None:
        return {"type": "base64", "media_type": inline[1] or media_type, "data": url[inline.end() :]}
    return {"type": "url", "url": url}
