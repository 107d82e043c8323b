"""Scenarios that fail with status 200: error objects, broken events, answers without content."""

from __future__ import annotations

from lmclient.testing.fault.call import Call
from lmclient.testing.fault.reply import Reply, chunked, encode, event, plain
from lmclient.testing.fault.scenario import scenario
from lmclient.testing.fault.shapes import (
    FEW,
    PIECES,
    USAGE,
    chunk,
    completion,
    ending,
    envelope,
    events,
    healthy,
    opening,
    text_chunks,
    usage_chunk,
)


@scenario()
def error_in_200(call: Call) -> Reply:
    return plain(call, encode({"error": {"message": "Provider returned error", "code": 502}}))


@scenario()
def error_event(call: Call) -> Reply:
    if not call.stream:
        return error_in_200(call)
    failure = {"message": "The server had an error while processing your request.", "type": "server_error"}
    payloads = [
        *opening(call),
        *text_chunks(call, PIECES[:2]),
        {"error": {**failure, "param": None, "code": None}},
    ]
    return chunked(call, map(event, payloads))


@scenario()
def malformed_event(call: Call) -> Reply:
    broken = encode(completion(call))[:40]
    if not call.stream:
        return plain(call, broken)
    parts = events(healthy(call))
    parts.insert(len(opening(call)) + FEW, b"data: " + broken + b"\n\n")
    return chunked(call, parts)


@scenario()
def empty_choices(call: Call) -> Reply:
    empty = {**envelope(call), "choices": []}
    if call.stream:
        return chunked(call, events([empty, usage_chunk(call)]))
    return plain(call, encode({**empty, "usage": USAGE}))


@scenario()
def null_content(call: Call) -> Reply:
    if call.stream:
        first = chunk(call, {"role": "assistant", "content": None})
        return chunked(call, events([first, *ending(call)]))
    return plain(call, encode(completion(call, None)))
