"""The input of OpenAI's Responses as a conversation.

https://platform.openai.com/docs/api-reference/responses/create, field `input`.
"""

from __future__ import annotations

from typing import Any

from lmclient.core.conversation import Conversation
from lmclient.errors import BadRequestError, UnsupportedOptionError

Json = dict[str, Any]


def read_input(input: str | list[Json], instructions: str | None) -> Conversation:
    """The conversation: the instructions, then the items in their order.

    An assistant's reasoning, text and calls that follow each other are one turn. Raises
    `BadRequestError` naming the position of an item that is wrong, `UnsupportedOptionError` for a kind
    of item that only OpenAI's own servers can resolve.
    """
    messages: list[Json] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    if isinstance(input, str):
        messages.append({"role": "user", "content": input})
    else:
        for position, item in enumerate(input):
            _add(messages, item, f"input[{position}]")
    return Conversation.of(messages)


def _add(messages: list[Json], item: Json, where: str) -> None:
    match item:
        case {"type": "function_call", "call_id": str(id), "name": str(name)}:
            function = {"name": name, "arguments": item.get("arguments") or ""}
            _assistant(messages, "calls")["tool_calls"].append(
                {"id": id, "type": "function", "function": function}
            )
        case {"type": "function_call_output", "call_id": str(id), "output": output}:
            messages.append({"role": "tool", "tool_call_id": id, "content": _content(output, where)})
        case {"type": "reasoning"}:
            _assistant(messages, "reasoning")["reasoning_content"] += _reasoning(item)
        case {"role": "assistant", "content": content}:
            _assistant(messages, "content")["content"] = _content(content, where)
        case {"role": str(role), "content": content}:
            messages.append({"role": role, "content": _content(content, where)})
        case {"type": str(kind)}:
            raise UnsupportedOptionError(f"{where}: items of the type {kind!r:.60} are not supported.")
        case _:
            raise BadRequestError(f"{where} is {item!r:.60}; a message, a call or its output is expected.")


def _assistant(messages: list[Json], part: str) -> Json:
    """The assistant's turn that takes this part: the last one, unless that is already beyond it."""
    last = messages[-1] if messages else None
    if last is not None and last["role"] == "assistant":
        said = bool(last["tool_calls"]) or (bool(last["content"]) and part != "calls")
        if part == "calls" or not said:
            return last
    turn: Json = {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": []}
    messages.append(turn)
    return turn


def _reasoning(item: Json) -> str:
    """The text of a reasoning item: in full where it is given, else its summary."""
    parts = item.get("content") or item.get("summary") or []
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _content(content: object, where: str) -> str | list[Json]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequestError(f"{where}: content is {content!r:.60}; text or a list of parts is expected.")
    return [_part(part, where) for part in content]


def _part(part: Any, where: str) -> Json:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url, "detail": part.get("detail")}}
        case {"type": "input_file", "file_id": str(id)}:
            return {"type": "file", "file": {"file_id": id}}
        case {"type": "input_file"} if url := part.get("file_data") or part.get("file_url"):
            return {"type": "file", "file": {"file_data": url, "filename": part.get("filename")}}
        case _:
            raise BadRequestError(f"{where}: the part {part!r:.60} is neither text, an image nor a file.")
