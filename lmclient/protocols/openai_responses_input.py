"""Turns as the input items of OpenAI's Responses.

https://platform.openai.com/docs/api-reference/responses/create, field `input`. An assistant's turn
goes back as the very items that the server sent, in their order: a reasoning item belongs to the
message or the call behind it, and the server checks that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lmclient.core.conversation import FilePart, ImagePart, Part, Role, TextPart, Turn
from lmclient.core.messages import call_to_json, data_url
from lmclient.errors import BadRequestError, UnsupportedOptionError
from lmclient.protocols.base import as_dict, as_str

Json = dict[str, Any]


def encode_input(turns: Iterable[Turn]) -> list[Json]:
    """The input items. Raises `BadRequestError` and `UnsupportedOptionError`."""
    items: list[Json] = []
    for turn in turns:
        if turn.role is Role.ASSISTANT:
            items += replayed(turn) or _assistant_items(turn)
        elif turn.role is Role.TOOL:
            items.append(_tool_output(turn))
        else:
            items.append({"role": turn.role.value, "content": _content(turn.content)})
    return items


def replayed(turn: Turn) -> list[Json] | None:
    """The items that the server sent for this turn, or None where they cannot go back.

    They cannot if another protocol made them, if the application has changed the text or the calls
    since, or if a reasoning item is only a reference to what the server did not store.
    """
    items = turn.provider_items
    if not items or not all(_is_output_item(item) for item in items):
        return None
    if any(item["type"] == "reasoning" and not _is_whole_reasoning(item) for item in items):
        return None
    if "".join(message_text(item) for item in items) != turn.text:
        return None
    calls = [(item.get("call_id"), item.get("name")) for item in items if item["type"] == "function_call"]
    if calls != [(call.id, call.name) for call in turn.tool_calls]:
        return None
    if any(call.arguments is None for call in turn.tool_calls):
        return None
    return [{name: value for name, value in item.items() if value is not None} for item in items]


def message_text(item: Json) -> str:
    """The visible text of a message item, refusals included; "" for any other item."""
    if item.get("type") != "message":
        return ""
    content = item.get("content")
    if not isinstance(content, list):
        return as_str(content)
    parts = map(as_dict, content)
    return "".join(as_str(part.get("text")) or as_str(part.get("refusal")) for part in parts)


def _is_output_item(item: Json) -> bool:
    kind = as_str(item.get("type"))
    return kind in ("message", "reasoning", "compaction", "mcp_list_tools", "mcp_approval_request") or (
        kind.endswith(("_call", "_output"))
    )


def _is_whole_reasoning(item: Json) -> bool:
    return bool(item.get("encrypted_content") or item.get("content"))


def _assistant_items(turn: Turn) -> list[Json]:
    if not isinstance(turn.content, str) and not all(isinstance(part, TextPart) for part in turn.content):
        raise UnsupportedOptionError(
            "OpenAI's Responses API takes images and files from users and tools, not from the assistant."
        )
    items: list[Json] = []
    if turn.text or not turn.tool_calls:
        # The type may be left out, says OpenAI; llama.cpp then takes the item for none that it knows.
        items.append({"type": "message", "role": "assistant", "content": turn.text})
    for call in turn.tool_calls:
        function = call_to_json(call)["function"]
        items.append({"type": "function_call", "call_id": call.id, **function})
    return items


def _tool_output(turn: Turn) -> Json:
    if turn.tool_call_id is None:
        raise BadRequestError("A tool's turn has no tool_call_id, so its call cannot be found.")
    return {
        "type": "function_call_output",
        "call_id": turn.tool_call_id,
        "output": _content(turn.content),
    }


def _content(content: str | Iterable[Part]) -> str | list[Json]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Part) -> Json:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, ImagePart):
        return {
            "type": "input_image",
            "image_url": part.url if part.url is not None else data_url(part.data, part.media_type),
            "detail": part.detail or "auto",
        }
    return _file(part)


def _file(part: FilePart) -> Json:
    if part.file_id is not None:
        return {"type": "input_file", "file_id": part.file_id}
    if part.url is not None:
        return {"type": "input_file", "file_url": part.url}
    return {
        "type": "input_file",
        "filename": part.filename or "file",
        "file_data": data_url(part.data, part.media_type),
    }
