"""Server-sent events, whole and cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmclient.errors import ProtocolError
from lmclient.protocols import sse
from lmclient.protocols.sse import Event, SSEParser


def parsed(data: bytes, step: int = 0) -> list[Event]:
    """The events of the data, fed in pieces of `step` bytes (0: whole)."""
    parser = SSEParser()
    events: list[Event] = []
    for start in range(0, len(data), step or max(len(data), 1)):
        events += parser.feed(data[start : start + (step or len(data))])
    return events + parser.finish()


SEPARATORS = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg".encode()
CASES: dict[str, tuple[bytes, list[Event]]] = {
    "one": (b"data: a\n\n", [(b"", b"a")]),
    "two": (b"data: a\n\ndata: b\n\n", [(b"", b"a"), (b"", b"b")]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"", b"a"), (b"", b"b")]),
    "CR": (b"data: a\r\rdata: b\r\r", [(b"", b"a"), (b"", b"b")]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\r\n", [(b"", b"a"), (b"", b"b")]),
    "no space": (b"data:a\n\n", [(b"", b"a")]),
    "two spaces": (b"data:  a\n\n", [(b"", b" a")]),
    "colons in the data": (b"data: a: b\n\n", [(b"", b"a: b")]),
    "several lines": (b"data: a\ndata: b\n\n", [(b"", b"a\nb")]),
    "named": (b"event: error\ndata: a\n\n", [(b"error", b"a")]),
    "name after data": (b"data: a\nevent: error\n\n", [(b"error", b"a")]),
    "comment": (b": ping\n\ndata: a\n\n", [(b"", b"a")]),
    "comment inside": (b"data: a\n: ping\ndata: b\n\n", [(b"", b"a\nb")]),
    "comment right before": (b": ping\ndata: a\n\n", [(b"", b"a")]),
    "only retry": (b"retry: 3000\n\ndata: a\n\n", [(b"", b"a")]),
    "only id": (b"id: 1\n\ndata: a\n\n", [(b"", b"a")]),
    "only a name": (b"event: ping\n\ndata: a\n\n", [(b"", b"a")]),
    "fields without colon": (b"data\nid\nevent\n\ndata: a\n\n", [(b"", b"a")]),
    "empty data": (b"data:\n\ndata: \n\ndata: a\n\n", [(b"", b"a")]),
    "unknown field": (b"foo: x\ndata: a\n\n", [(b"", b"a")]),
    "longer field names": (b"data2: x\ndatax: y\ndata: a\n\n", [(b"", b"a")]),
    "blank lines": (b"\n\n\n\ndata: a\n\n\n\n\n", [(b"", b"a")]),
    "three line ends": (b"data: a\n\n\ndata: b\n\n", [(b"", b"a"), (b"", b"b")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [(b"", b"a")]),
    "byte order mark, then a comment": (b"\xef\xbb\xbf: x\n\ndata: a\n\n", [(b"", b"a")]),
    "second mark is data": (b"data: \xef\xbb\xbfa\n\n", [(b"", b"\xef\xbb\xbfa")]),
    "no blank line at the end": (b"data: a\n\ndata: b", [(b"", b"a"), (b"", b"b")]),
    "one line end at the end": (b"data: a\n", [(b"", b"a")]),
    "a lone CR at the end": (b"data: a\r", [(b"", b"a")]),
    "unicode line ends": (b"data: " + SEPARATORS + b"\n\n", [(b"", SEPARATORS)]),
    "nothing": (b"", []),
    "only comments": (b": a\n\n: b\n\n", []),
    "CRLF and data over lines": (b"data: a\r\ndata: b\r\n\r\n", [(b"", b"a\nb")]),
}


@pytest.mark.parametrize("step", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("name", CASES)
def test_events_are_the_same_however_they_are_cut(name: str, step: int) -> None:
    """B02 and its like"""
    data, events = CASES[name]
    assert parsed(data, step) == events


@pytest.mark.parametrize("name", CASES)
def test_bytes_after_the_last_event_change_nothing(name: str) -> None:
    data, events = CASES[name]
    if data.endswith((b"\n\n", b"\r\r", b"\r\n\r\n")):
        assert parsed(data + b": ping\n\n") == events


def test_an_event_is_there_as_soon_as_it_is_whole() -> None:
    """B12"""
    parser = SSEParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\n") == [(b"", b"a")]


def test_an_event_with_crlf_does_not_wait_for_the_next_one() -> None:
    """B12: a CR may be the whole line end; its LF comes later or never."""
    parser = SSEParser()
    assert parser.feed(b"data: a\r\n\r") == [(b"", b"a")]
    assert parser.feed(b"\ndata: b\r\n\r\n") == [(b"", b"b")]


def test_three_mebibytes_in_one_line_are_delivered() -> None:
    """B08"""
    line = b"x" * (3 * 2**20)
    assert parsed(b"data: " + line + b"\n\n", 65536) == [(b"", line)]


def test_the_cap_is_far_above_sixteen_mebibytes() -> None:
    """B08"""
    assert sse.MAX_EVENT >= 32 * 2**20


def test_an_event_beyond_the_cap_is_a_protocol_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """B08: also where no line ever ends, and where the lines are many."""
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    for piece in (b"x" * 100, b"data: x\n" * 20, b":" + b"x" * 100):
        with pytest.raises(ProtocolError, match="MiB"):
            parsed(piece * 20, len(piece))


def test_many_small_events_are_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    parser = SSEParser()
    for _ in range(200):
        assert parser.feed(b"data: xxxxxxxx\n") == []
        assert parser.feed(b"\n") == [(b"", b"xxxxxxxx")]


PIECE = st.sampled_from(
    [b"data: a", b"data:", b"data: ", b": c", b"event: e", b"id: 1", b"\n", b"\r", b"\r\n", b"\n\n", b"x"]
)


def reference(data: bytes) -> list[Event]:
    """The standard's algorithm, line by line; an event that lacks its blank line counts."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    events: list[Event] = []
    name, values = b"", []
    for line in [*lines, b""]:
        if line:
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"event":
                name = value
            elif field == b"data":
                values.append(value)
            continue
        if any(values):
            events.append((name, b"\n".join(values)))
        name, values = b"", []
    return events


@given(pieces=st.lists(PIECE, max_size=14), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_any_bytes_cut_anywhere_mean_what_the_standard_says(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    parser = SSEParser()
    events: list[Event] = []
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in pairwise(places):
        events += parser.feed(data[start:end])
    assert events + parser.finish() == reference(data)
