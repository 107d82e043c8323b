"""Server-sent events, as the WHATWG HTML standard parses them (section 9.2.6).

Contract: `feed` takes bytes cut anywhere and returns the events that are complete; `finish` returns
one that lacks only its blank line. Only CR, LF and CRLF end a line: U+2028, U+0085 and the like are
text. Comments, `id:` and `retry:` are passed over, and so is a block without data.
"""

from __future__ import annotations

from lmclient.errors import ProtocolError

MAX_EVENT = 64 * 2**20
"""The longest event in bytes that is accepted; a `ProtocolError` beyond it."""

_BOM = b"\xef\xbb\xbf"
Event = tuple[bytes, bytes]
"""The event's name (b"" if it has none) and its data, lines joined by LF."""


class SSEParser:
    """Splits a stream of bytes into events."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the event that is not complete yet
        self._size = 0
        self._started = False
        self._after_cr = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes. Raises `ProtocolError` for one over `MAX_EVENT`."""
        if not self._started:
            data = self._without_bom(data)
        if b"\r" in data or self._after_cr:
            data = self._with_lf_only(data)
        if not data:
            return []
        if b"\n" not in data:
            self._keep(data)
            return []
        if self._pieces:
            data = b"".join((*self._pieces, data))
            self._pieces.clear()
            self._size = 0
        end = data.rfind(b"\n\n")
        if end < 0:
            if not data.strip(b"\n"):
                return []
            self._keep(data)
            return []
        if end + 2 < len(data):
            self._keep(data[end + 2 :])
        return self._events(data[:end])

    def finish(self) -> list[Event]:
        """The last event, where the stream ended without the blank line that should follow it."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        return self._events(data)

    def _events(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for block in data.split(b"\n\n"):
            if block.startswith(b"data: ") and len(block) > 6 and b"\n" not in block:
                events.append((b"", block[6:]))
            elif (event := _parse(block)) is not None:
                events.append(event)
        return events

    def _keep(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > MAX_EVENT:
            raise ProtocolError(f"The server sent an event of more than {MAX_EVENT >> 20} MiB.")

    def _without_bom(self, data: bytes) -> bytes:
        data = b"".join((*self._pieces, data))
        self._pieces.clear()
        self._size = 0
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._keep(data)
            return b""
        self._started = True
        return data.removeprefix(_BOM)

    def _with_lf_only(self, data: bytes) -> bytes:
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if data:
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _parse(block: bytes) -> Event | None:
    name = b""
    lines: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            lines.append(value)
        elif field == b"event":
            name = value
    return (name, b"\n".join(lines)) if any(lines) else None
