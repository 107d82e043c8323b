"""What a scenario answers with: the bytes of an HTTP response, and how they are to be written."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus

from lmclient.testing.fault.call import Call

JSON_TYPE = "application/json"
SSE_TYPE = "text/event-stream; charset=utf-8"
DONE = b"data: [DONE]\n\n"


class Ending(enum.Enum):
    """What happens to the connection after the last write."""

    KEEP_ALIVE = enum.auto()
    CLOSE = enum.auto()  # FIN
    RESET = enum.auto()  # RST, SETTLE seconds after the last write
    HANG = enum.auto()  # nothing, until the client hangs up


@dataclass(frozen=True)
class Reply:
    """Bytes to write, one TCP write per item, with pauses in seconds."""

    writes: Sequence[bytes]
    before: float = 0.0
    between: float = 0.0
    then: Ending = Ending.KEEP_ALIVE


def encode(payload: object) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def event(payload: object) -> bytes:
    """A server-sent event with the payload as JSON."""
    return b"data: " + encode(payload) + b"\n\n"


def head(call: Call, status: int, headers: Mapping[str, str], version: str = "1.1") -> bytes:
    reason = "Overloaded" if status == 529 else HTTPStatus(status).phrase
    lines = [f"HTTP/{version} {status} {reason}"]
    fields = {
        "date": formatdate(usegmt=True),
        "x-request-id": f"req_{call.scenario}_{call.number}",
        **headers,
    }
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def plain(
    call: Call,
    body: bytes,
    *,
    status: int = 200,
    content_type: str = JSON_TYPE,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A response with content-length, in two writes: head and body."""
    fields = {"content-type": content_type, "content-length": str(len(body)), **(headers or {})}
    return Reply([head(call, status, fields), body])


def chunked(
    call: Call,
    parts: Iterable[bytes],
    *,
    content_type: str = SSE_TYPE,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A response with chunked transfer coding, one write and HTTP chunk per part."""
    fields = {"content-type": content_type, "transfer-encoding": "chunked", **(headers or {})}
    frames = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part]
    return Reply([head(call, 200, fields), *frames, b"0\r\n\r\n"])


def error(
    call: Call,
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A JSON error as OpenAI words it."""
    details = {"message": message, "type": kind, "param": param, "code": code}
    return plain(call, encode({"error": details}), status=status, headers=headers)
