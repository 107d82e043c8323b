"""Turns as message dicts of OpenAI's chat completions API, and back.

https://platform.openai.com/docs/api-reference/chat/create, field `messages`; the reasoning of an
assistant travels as `reasoning_content`, the name most compatible servers use.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lmclient.core.conversation import FilePart, ImagePart, Part, Role, TextPart, Turn
from lmclient.core.tools import ToolCall
from lmclient.errors import BadRequestError

Json = dict[str, Any]
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?;base64,", re.IGNORECASE)


def to_message(turn: Turn) -> Json:
    """The turn as a message dict."""
    content = turn.content
    message: Json = {
        "role": turn.role.value,
        "content": content if isinstance(content, str) else [part_to_json(part) for part in content],
    }
    if turn.name is not None and turn.role is not Role.TOOL:
        message["name"] = turn.name
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.tool_calls:
        message["tool_calls"] = [call_to_json(call) for call in turn.tool_calls]
        if not content:
            message["content"] = None
    if turn.tool_call_id is not None:
        message["tool_call_id"] = turn.tool_call_id
    return message


def call_to_json(call: ToolCall) -> Json:
    """A tool call as it stands in an assistant's message.

    Text that is no JSON object is replaced by `{}`: every provider refuses it in a history.
    """
    arguments = "{}" if call.arguments is None else msgspec.json.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def part_to_json(part: Part) -> Json:
    """A part of a message's content: text, `image_url` or `file`."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        image: Json = {"url": part.url if part.url is not None else data_url(part.data, part.media_type)}
        if part.detail is not None:
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}
    file: Json = {}
    if part.file_id is not None:
        file["file_id"] = part.file_id
    else:
        file["file_data"] = part.url if part.url is not None else data_url(part.data, part.media_type)
        file["filename"] = part.filename or "file"
    return {"type": "file", "file": file}


def data_url(data: bytes | None, media_type: str) -> str:
    """The bytes as a `data:` URL."""
    return f"data:{media_type};base64,{base64.b64encode(data or b'').decode()}"


def from_message(message: object, position: int) -> Turn:
    """The turn of a message dict (a Turn is returned as it is).

    Raises `BadRequestError` naming the position.
    """
    if isinstance(message, Turn):
        return message
    where = f"Message {position}"
    if not isinstance(message, Mapping):
        raise BadRequestError(f"{where} is {message!r:.60}; a Turn or a dict with a role is expected.")
    role = "system" if message.get("role") == "developer" else message.get("role")
    if role not in list(Role):
        names = ", ".join(Role)
        raise BadRequestError(f"{where} has the role {role!r:.60}; expected one of {names}.")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, Sequence):
        raise BadRequestError(f"{where}: tool_calls is {calls!r:.60}; a list is expected.")
    return Turn(
        role,
        _content(message.get("content"), where),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        tool_calls=tuple(_call(call, where) for call in calls),
        tool_call_id=message.get("tool_call_id"),
        name=message.get("name"),
    )


def _content(value: object, where: str) -> str | list[Part]:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return [_part(part, where) for part in value]
    raise BadRequestError(f"{where}: content is {value!r:.60}; a str or a list of parts is expected.")


def _part(part: Any, where: str) -> Part:
    if isinstance(part, TextPart | ImagePart | FilePart):
        return part
    if isinstance(part, str):
        return TextPart(part)
    match part:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image_url", "image_url": {"url": str(url), **rest}}:
            data, media_type = _decoded(url, where)
            detail = _str(rest, "detail")
            if data is None:
                return ImagePart(url=url, detail=detail)
            return ImagePart(data=data, media_type=media_type or "image/png", detail=detail)
        case {"type": "file", "file": {"file_id": str(file_id), **rest}}:
            return FilePart(file_id=file_id, filename=_str(rest, "filename"))
        case {"type": "file", "file": {"file_data": str(url), **rest}}:
            data, media_type = _decoded(url, where)
            if data is None:
                return FilePart(url=url, filename=_str(rest, "filename"))
            return FilePart(
                data=data, media_type=media_type or "application/pdf", filename=_str(rest, "filename")
            )
        case _:
            raise BadRequestError(f"{where}: the part {part!r:.60} is neither text, image_url nor file.")


def _str(fields: Mapping[Any, object], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _decoded(url: str, where: str) -> tuple[bytes | None, str]:
    match = _DATA_URL.match(url)
    if match is None:
        return None, ""
    try:
        return base64.b64decode(url[match.end() :], validate=True), match[1]
    except binascii.Error as error:
        raise BadRequestError(f"{where}: a data: URL does not hold valid base64 ({error}).") from error


def _call(call: object, where: str) -> ToolCall:
    match call:
        case ToolCall():
            return call
        case {"id": str(id), "function": {"name": str(name), **rest}}:
            given = rest.get("arguments")
            if isinstance(given, Mapping):  # some servers and applications do not encode them
                given = msgspec.json.encode(given).decode()
            return tool_call(id, name, given if isinstance(given, str) else "")
        case _:
            raise BadRequestError(f"{where}: the tool call {call!r:.60} lacks an id or a function name.")


def tool_call(id: str, name: str, raw_arguments: str) -> ToolCall:
    """The call with its argument text parsed; empty text (or `null`) is a call without arguments."""
    text = raw_arguments.strip()
    if not text or text == "null":
        return ToolCall(id, name, {}, raw_arguments)
    try:
        arguments = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        arguments = None
    return ToolCall(id, name, arguments if isinstance(arguments, dict) else None, raw_arguments)
