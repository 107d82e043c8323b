"""Scenarios about the finish reason and where usage stands."""

from __future__ import annotations

from lmclient.testing.fault.call import Call, Json
from lmclient.testing.fault.reply import Reply, chunked, encode, plain
from lmclient.testing.fault.scenario import scenario
from lmclient.testing.fault.shapes import (
    FEW,
    PIECES,
    USAGE,
    chunk,
    complete,
    completion,
    ending,
    events,
    opening,
    text_chunks,
    usage_chunk,
)


@scenario()
def content_filter(call: Call) -> Reply:
    return complete(call, PIECES[:FEW], "content_filter")


@scenario()
def length(call: Call) -> Reply:
    return complete(call, PIECES[:FEW], "length")


@scenario(stream_only=True)
def duplicate_finish(call: Call) -> Reply:
    return chunked(call, events([*opening(call), *text_chunks(call), chunk(call, {}, "stop"), *ending(call)]))


@scenario(stream_only=True)
def late_text_after_finish(call: Call) -> Reply:
    *early, late = text_chunks(call)
    return chunked(call, events([*opening(call), *early, chunk(call, {}, "stop"), late, usage_chunk(call)]))


@scenario(stream_only=True)
def usage_every_chunk(call: Call) -> Reply:
    def usage(tokens: int) -> Json:
        prompt = USAGE["prompt_tokens"]
        return {**USAGE, "completion_tokens": tokens, "total_tokens": prompt + tokens}

    payloads = [{**payload, "usage": usage(0)} for payload in opening(call)]
    payloads += [{**payload, "usage": usage(tokens)} for tokens, payload in enumerate(text_chunks(call), 1)]
    payloads.append(chunk(call, {}, "stop", usage=USAGE))
    return chunked(call, events(payloads))


@scenario(stream_only=True)
def usage_with_choices(call: Call) -> Reply:
    tail = [chunk(call, {}, "stop"), chunk(call, {}, usage=USAGE)]
    return chunked(call, events([*opening(call), *text_chunks(call), *tail]))


@scenario()
def usage_none(call: Call) -> Reply:
    if call.stream:
        return chunked(call, events([*opening(call), *text_chunks(call), chunk(call, {}, "stop")]))
    body = completion(call)
    del body["usage"]
    return plain(call, encode(body))


@scenario()
def usage_null_fields(call: Call) -> Reply:
    usage = {**USAGE, "prompt_tokens_details": None, "completion_tokens_details": None}
    if not call.stream:
        return plain(call, encode({**completion(call), "usage": usage}))
    payloads = [*opening(call), *text_chunks(call), chunk(call, {}, "stop")]
    return chunked(call, events([*({**p, "usage": None} for p in payloads), usage_chunk(call, usage)]))
