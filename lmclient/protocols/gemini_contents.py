"""Turns as Gemini's contents: https://ai.google.dev/api/caching#Content.

A model's turn goes back as the very parts that the server sent, in their order, because a thought
signature belongs to its part: https://ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from lmclient.core.conversation import FilePart, ImagePart, Part, Role, TextPart, Turn
from lmclient.errors import BadRequestError
from lmclient.protocols.base import as_dict, as_str

Json = dict[str, Any]

PART_FIELDS = frozenset(
    {
        "text",
        "thoughtSignature",
        "functionCall",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    }
)
"""The fields of which a part that came from Gemini has at least one; it never has a `type`."""

NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for a call that has no signature, such as one that another model made."""


class _Calls:
    """The calls of the turns so far: their results must name the function, and the id if it had one."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str | None]] = {}

    def add(self, id: str, name: str, wire_id: str | None) -> None:
        self._known[id] = (name, wire_id)

    def of(self, turn: Turn) -> tuple[str, str | None]:
        """The name and the wire id of the call that the turn answers. Raises `BadRequestError`."""
        if turn.tool_call_id in self._known:
            return self._known[turn.tool_call_id]
        if turn.name is None:
            raise BadRequestError(
                f"There is no call with the id {turn.tool_call_id!r} before its result, and the result "
                "has no name; Gemini needs the name of the function."
            )
        return turn.name, turn.tool_call_id


def encode_contents(turns: Iterable[Turn], *, signatures: bool) -> tuple[list[Json], list[Json]]:
    """The parts of the system instruction, and the contents.

    System turns go into the instruction wherever they stand: the contents know no such role. The
    results of one round share one content. `signatures` says that the model refuses a call without
    a signature.
    """
    system: list[Json] = []
    contents: list[Json] = []
    calls = _Calls()
    before: Role | None = None
    for turn in turns:
        if turn.role is Role.SYSTEM:
            system += _parts(turn.content)
            continue
        if turn.role is Role.ASSISTANT:
            contents.append({"role": "model", "parts": _model_parts(turn, calls, signatures)})
        elif turn.role is Role.TOOL and before is Role.TOOL:
            contents[-1]["parts"].append(_response(turn, calls))
        elif turn.role is Role.TOOL:
            contents.append({"role": "user", "parts": [_response(turn, calls)]})
        else:
            contents.append({"role": "user", "parts": _parts(turn.content) or [{"text": ""}]})
        before = turn.role
    return system, contents


def _model_parts(turn: Turn, calls: _Calls, signatures: bool) -> list[Json]:
    parts = _replayed(turn)
    if parts is None:
        parts = [part for part in _parts(turn.content) if part != {"text": ""}]
        for call in turn.tool_calls:
            parts.append({"functionCall": {"name": call.name, "args": call.arguments or {}, "id": call.id}})
    called = [part for part in parts if "functionCall" in part]
    for call, part in zip(turn.tool_calls, called, strict=True):
        calls.add(call.id, call.name, part["functionCall"].get("id"))
    if signatures and called and "thoughtSignature" not in called[0]:
        first = parts.index(called[0])
        parts[first] = {**called[0], "thoughtSignature": NO_SIGNATURE}
    return parts or [{"text": ""}]


def _replayed(turn: Turn) -> list[Json] | None:
    """The parts that the server sent for this turn.

    None if another protocol made them, or the application has changed the text or calls since.
    """
    parts = turn.provider_items
    if not parts or not all("type" not in part and PART_FIELDS & part.keys() for part in parts):
        return None
    text = "".join(as_str(part.get("text")) for part in parts if not part.get("thought"))
    names = [as_str(as_dict(part["functionCall"]).get("name")) for part in parts if "functionCall" in part]
    if text != turn.text or names != [call.name for call in turn.tool_calls]:
        return None
    return list(parts)


def _response(turn: Turn, calls: _Calls) -> Json:
    name, wire_id = calls.of(turn)
    response: Json = {"name": name, "response": {"error" if turn.is_error else "output": turn.text}}
    if wire_id is not None:
        response["id"] = wire_id
    media = [] if isinstance(turn.content, str) else [p for p in turn.content if not isinstance(p, TextPart)]
    if media:
        response["parts"] = _parts(media)
    return {"functionResponse": response}


def _parts(content: str | Sequence[Part]) -> list[Json]:
    return [{"text": content}] if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Part) -> Json:
    if isinstance(part, TextPart):
        return {"text": part.text}
    where = part.file_id if isinstance(part, FilePart) and part.file_id is not None else part.url
    if where is None:
        data = base64.b64encode(part.data or b"").decode()
        return {"inlineData": {"mimeType": part.media_type, "data": data}}
    return _linked(part, where)


def _linked(part: ImagePart | FilePart, url: str) -> Json:
    """A part that the server fetches, or one whose bytes stand in its `data:` URL."""
    if url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        return {"inlineData": {"mimeType": head[len("data:") :].split(";")[0], "data": data}}
    return {"fileData": {"mimeType": _media_type(part, url), "fileUri": url}}


def _media_type(part: ImagePart | FilePart, url: str) -> str:
    """What the end of the URL says, where the part itself has only the default."""
    guessed = mimetypes.guess_type(urlsplit(url).path)[0]
    if guessed is None or part.media_type not in ("image/png", "application/pdf"):
        return part.media_type
    return guessed
