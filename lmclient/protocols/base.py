"""The contract of a wire protocol.

A protocol does no IO and keeps no state. `encode` gives the bytes of a request; `decoder` gives an
object for one answer, which is fed with bytes cut anywhere:

- `feed(data)` returns the chunks that `data` completes, none if it needs more;
- `finish()` is called at the end of the body and returns the last chunks;
- neither raises, so that no chunk before an error is lost: `failure` is then set, to be raised once
  the chunks have been delivered. It is a `ProtocolError` for what is not the protocol, a
  `ProviderError` for an error that the server reports inside a successful response, and a
  `StreamInterruptedError` where the body ended before the answer;
- `answer` holds what has arrived, at any time;
- `events` counts what carried data, so that a heartbeat is no sign of life of the model;
- `ended` says that the server announced the end, so that nothing more need be awaited.
"""

from __future__ import annotations

import abc
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lmclient.core.completion import Chunk, FinishReason
from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.errors import LMClientError, ProtocolError, ProviderError, StreamInterruptedError
from lmclient.protocols.answer import Answer, Splitter
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.sse import SSEParser

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

T = TypeVar("T")
_EVENT_STREAM = re.compile(rb"(data|event|id|retry)?[:\r\n]")
_LONGEST_FIELD = len(b"event:")
_LONGEST_COUNT = 18  # digits
MAX_BODY = 256 * 2**20
"""The longest JSON answer in bytes that is accepted."""


class Decoder(abc.ABC):
    """Reads one answer. See the head of this module for the contract."""

    events = 0
    ended = False
    failure: LMClientError | None = None

    def __init__(self, splitter: Splitter | None = None) -> None:
        self.answer = Answer(splitter)

    def feed(self, data: bytes) -> list[Chunk]:
        """The chunks that `data` completes."""
        chunks: list[Chunk] = []
        try:
            self._feed(data, chunks)
        except LMClientError as error:
            self.failure = error
        return chunks

    def finish(self) -> list[Chunk]:
        """The last chunks."""
        chunks: list[Chunk] = []
        if self.failure is None:
            try:
                self._finish(chunks)
            except LMClientError as error:
                self.failure = error
            else:
                if self.answer.finish_reason is None:
                    self.answer.finish_reason = FinishReason.UNKNOWN
                chunks += self.answer.end()
        return chunks

    @abc.abstractmethod
    def _feed(self, data: bytes, chunks: list[Chunk]) -> None:
        """Adds to `chunks` what `data` completes; raises what `failure` shall be."""

    @abc.abstractmethod
    def _finish(self, chunks: list[Chunk]) -> None:
        """The same at the end of the body."""


class WireProtocol(abc.ABC):
    """How requests are said, and answers read, on one kind of wire."""

    name: str
    prefix: str
    """The path that a URL without one gets, such as "/v1"."""
    endpoints: tuple[str, ...]
    """The ends of a URL that already names the endpoint, such as "/chat/completions"."""

    @abc.abstractmethod
    def encode(self, request: CompletionRequest, dialect: Dialect) -> HttpRequest:
        """The HTTP request of a call. Raises `UnsupportedOptionError` and `BadRequestError`."""

    @abc.abstractmethod
    def decoder(self, request: CompletionRequest, dialect: Dialect) -> Decoder:
        """A decoder for the answer to this request."""

    @abc.abstractmethod
    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The error that a response with an error status means."""

    @abc.abstractmethod
    def encode_models(self, profile: ModelProfile, dialect: Dialect) -> HttpRequest:
        """The request for the list of models."""

    @abc.abstractmethod
    def decode_models(self, body: bytes) -> list[str]:
        """The names of the models in the answer to that. Raises `ProtocolError`."""


class SSEDecoder(Decoder):
    """A decoder of answers that are either a stream of events or one JSON body.

    Which of the two it is shows in the first byte, not in the content type, which servers get
    wrong; and a server may answer a request for a stream with plain JSON, such as an error.
    """

    _sse: SSEParser | None = None
    _body: list[bytes] | None = None
    _size = 0
    _sniffed = False

    @abc.abstractmethod
    def read_event(self, name: bytes, data: bytes) -> Chunk | None:
        """Takes one event of a stream; returns what it shows."""

    @abc.abstractmethod
    def read_body(self, data: bytes) -> Chunk | None:
        """Takes the whole JSON body; returns what it shows."""

    @abc.abstractmethod
    def complete(self) -> bool:
        """Whether the events so far are a whole answer."""

    def _feed(self, data: bytes, chunks: list[Chunk]) -> None:
        if not self._sniffed:
            if self._body is None and data.startswith(b"{"):
                self._sniffed, self._body = True, []
            else:
                data = self._sniff(data)
                if not self._sniffed:
                    return
        if self._sse is None:
            self._keep(data)
            return
        for name, payload in self._sse.feed(data):
            if self.ended:
                break
            self.events += 1
            chunk = self.read_event(name, payload)
            if chunk is not None:
                chunks.append(chunk)

    def _finish(self, chunks: list[Chunk]) -> None:
        if self._body is not None:
            chunk = self.read_body(b"".join(self._body))
            if chunk is not None:
                chunks.append(chunk)
            return
        for name, payload in () if self.ended or self._sse is None else self._sse.finish():
            try:
                chunk = self.read_event(name, payload)
            except ProtocolError:  # half an event: the cut is what matters, and reported below
                break
            if chunk is not None:
                chunks.append(chunk)
        if not self._sniffed and not b"".join(self._body or ()).strip():
            raise StreamInterruptedError("The server's answer is empty.")
        if not self.complete():
            raise StreamInterruptedError("The stream stopped before its end, without a finish reason.")

    def _sniff(self, data: bytes) -> bytes:
        """Decides between JSON and events; returns the bytes held back so far."""
        data = b"".join((*(self._body or ()), data))
        start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
        if _EVENT_STREAM.match(start):
            self._sniffed, self._body, self._sse = True, None, SSEParser()
        elif len(start) > _LONGEST_FIELD or start[:1] in (b"{", b"[", b"<"):
            self._sniffed, self._body = True, []
        else:
            self._body = [data]
        return data

    def _keep(self, data: bytes) -> None:
        assert self._body is not None
        self._body.append(data)
        self._size += len(data)
        if self._size > MAX_BODY:
            raise ProtocolError(f"The server's answer is longer than {MAX_BODY >> 20} MiB.")
        if data.strip():
            self.events += 1


def decode_json(decoder: msgspec.json.Decoder[T], data: bytes, what: str) -> T:
    """The decoded value. Bytes that are not UTF-8 are read as U+FFFD, as browsers do.

    Raises `ProtocolError` that shows how the data begins.
    """
    try:
        return decoder.decode(data)
    except RecursionError as error:
        raise ProtocolError(f"The server sent {what} that is nested too deeply.") from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = data.decode("utf-8-sig", "replace")
        try:
            return decoder.decode(_without_half_characters(text).encode())
        except msgspec.DecodeError as error:
            shown = " ".join(text[:80].split()) if text.strip() else "nothing"
            raise ProtocolError(f"The server sent {what} that cannot be read ({error}): {shown}") from error


def is_cut(error: LMClientError) -> bool:
    """Whether `decode_json` failed on JSON that stops in the middle."""
    return isinstance(error.__cause__, msgspec.DecodeError) and "truncated" in str(error.__cause__)


def _without_half_characters(text: str) -> str:
    """JSON text in which a lone half of a surrogate pair, such as "\\ud83d", is U+FFFD."""
    if "\\u" not in text:
        return text
    try:
        text = json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def as_dict(value: object) -> dict[str, Any]:
    """The value if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_count(value: object) -> int | None:
    """The value if it is a whole number that is not negative, also in digits, else None."""
    if type(value) is int:  # nearly always
        return value if value >= 0 else None
    if type(value) is str and len(value) <= _LONGEST_COUNT and value.isascii() and value.isdecimal():
        return int(value)
    if type(value) is float and value.is_integer():
        return as_count(int(value))
    return None


def as_int(value: object) -> int:
    """The value if it is a whole number that is not negative, also in digits, else 0."""
    return as_count(value) or 0


def as_str(value: object) -> str:
    """The value if it is a str, else an empty one."""
    return value if isinstance(value, str) else ""
