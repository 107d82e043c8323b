"""Scenarios that are slow, fall silent or lose the connection."""

from __future__ import annotations

import math
from dataclasses import replace

from lmclient.testing.fault.call import Call
from lmclient.testing.fault.reply import (
    JSON_TYPE,
    SSE_TYPE,
    Ending,
    Reply,
    chunked,
    encode,
    event,
    head,
    plain,
)
from lmclient.testing.fault.scenario import EVERYWHERE, ok, scenario
from lmclient.testing.fault.shapes import (
    FEW,
    PIECES,
    beginning,
    complete,
    completion,
    events,
    healthy,
    opening,
    text_chunks,
)


@scenario(EVERYWHERE)
def slow_first_byte(call: Call) -> Reply:
    return replace(ok(call), before=2.0)


@scenario()
def slow_stream(call: Call) -> Reply:
    whole = complete(call)
    if not call.stream:
        start, body = whole.writes
        size = math.ceil(len(body) / 10)
        whole = replace(whole, writes=[start, *(body[at : at + size] for at in range(0, len(body), size))])
    return replace(whole, between=0.05)


@scenario(EVERYWHERE)
def hang(call: Call) -> Reply:
    return Reply([], then=Ending.HANG)


@scenario()
def hang_mid_stream(call: Call) -> Reply:
    return replace(beginning(call), then=Ending.HANG)


@scenario()
def drip(call: Call) -> Reply:
    everything = b"".join(complete(call, PIECES[:FEW]).writes)
    return Reply([bytes([byte]) for byte in everything], between=0.001)


@scenario(EVERYWHERE)
def reset_before_headers(call: Call) -> Reply:
    return Reply([], then=Ending.RESET)


@scenario()
def reset_mid_stream(call: Call) -> Reply:
    return replace(beginning(call), then=Ending.RESET)


@scenario(stream_only=True)
def truncated_stream(call: Call) -> Reply:
    return chunked(call, map(event, [*opening(call), *text_chunks(call, PIECES[:FEW])]))


@scenario(stream_only=True)
def no_done(call: Call) -> Reply:
    return chunked(call, map(event, healthy(call)))


@scenario()
def truncated_json(call: Call) -> Reply:
    if call.stream:
        body = b"".join(events(healthy(call)))
        start, body = plain(call, body, content_type=SSE_TYPE).writes
    else:
        start, body = complete(call).writes
    return Reply([start, body[: len(body) // 2]], then=Ending.CLOSE)


@scenario()
def http10_close(call: Call) -> Reply:
    parts = [encode(completion(call))]
    if call.stream:
        parts = events(healthy(call))
    fields = {"content-type": SSE_TYPE if call.stream else JSON_TYPE, "connection": "close"}
    return Reply([head(call, 200, fields, version="1.0"), *parts], then=Ending.CLOSE)
