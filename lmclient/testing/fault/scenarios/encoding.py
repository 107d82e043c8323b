"""Scenarios in which server-sent events, text encoding or the volume are unusual."""

from __future__ import annotations

import json
import random
import re
import zlib
from dataclasses import replace

from lmclient.testing.fault.call import Call
from lmclient.testing.fault.reply import JSON_TYPE, SSE_TYPE, Reply, chunked, encode, plain
from lmclient.testing.fault.scenario import scenario
from lmclient.testing.fault.shapes import complete, completion, ending, events, healthy, text_chunks

UNICODE_PIECES = ("Sea: ", "\U0001f30a", " umi 海", " 바다", " \U0001f469\u200d\U0001f52c", " fin")
UNICODE_TEXT = "".join(UNICODE_PIECES)
INVALID_UTF8_TEXT = "caf\ufffd au lait"
HUGE_SIZE = 8 * 2**20
MANY = 20_000


def cut_characters(data: bytes, rng: random.Random) -> list[bytes]:
    """Cut UTF-8 at a random place inside every character of three or four bytes."""
    wide = re.finditer(rb"[\xe0-\xf4][\x80-\xbf]{2,3}", data)
    places = [match.start() + rng.randrange(1, len(match[0])) for match in wide]
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@scenario()
def keepalive_comments(call: Call) -> Reply:
    if not call.stream:
        return chunked(call, [b"\n", b"\n\n", encode(completion(call))], content_type=JSON_TYPE)
    fillers = (b": ping\r\n\r\n", b"\r\n\r\n", b"event: ping\r\nid\r\nretry: 3000\r\n\r\n")
    parts = [fillers[0]]
    for number, payload in enumerate(healthy(call)):
        line = encode(payload)
        lines = json.dumps(payload, ensure_ascii=False, indent=1).encode().split(b"\n")
        styles = (
            b"event: message\r\nid: %d\r\ndata: %b\r\n\r\n" % (number, line),
            b": ping\r\ndata:%b\r\n\r\n" % line,
            b"".join(b"data: %b\r\n" % part for part in lines) + b"\r\n",
        )
        parts += [styles[number % 3], fillers[number % 3]]
    first_event = parts.pop(1)
    parts[1:1] = [first_event[:-1], first_event[-1:]]  # cut between the last CR and LF
    return replace(chunked(call, [*parts, b"data: [DONE]\r\n\r\n"]), between=0.002)


@scenario()
def bom_utf8(call: Call) -> Reply:
    mark = b"\xef\xbb\xbf"
    if not call.stream:
        return plain(call, mark + encode(completion(call)))
    first, *rest = events([*text_chunks(call), *ending(call)])
    return chunked(call, [mark + first, *rest])


@scenario()
def split_utf8(call: Call) -> Reply:
    if call.stream:
        body, content_type = b"".join(events(healthy(call, UNICODE_PIECES))), SSE_TYPE
    else:
        body, content_type = encode(completion(call, UNICODE_TEXT)), JSON_TYPE
    return replace(chunked(call, cut_characters(body, call.rng()), content_type=content_type), between=0.005)


@scenario()
def invalid_utf8(call: Call) -> Reply:
    good, bad = "\ufffd".encode(), b"\xe9"
    if not call.stream:
        return plain(call, encode(completion(call, INVALID_UTF8_TEXT)).replace(good, bad))
    parts = events(healthy(call, INVALID_UTF8_TEXT.partition(" au")))
    return chunked(call, [part.replace(good, bad) for part in parts])


@scenario()
def gzip(call: Call) -> Reply:
    headers = {"content-encoding": "gzip"}
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    if not call.stream:
        return plain(call, packer.compress(encode(completion(call))) + packer.flush(), headers=headers)
    parts = [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in events(healthy(call))]
    return chunked(call, [*parts, packer.flush()], headers=headers)


@scenario()
def wrong_content_type(call: Call) -> Reply:
    if not call.stream:
        return plain(call, encode(completion(call)), content_type="text/plain; charset=utf-8")
    return chunked(call, events(healthy(call)), content_type=JSON_TYPE)


@scenario()
def huge_chunk(call: Call) -> Reply:
    return complete(call, ["x" * HUGE_SIZE])


@scenario()
def many_chunks(call: Call) -> Reply:
    return complete(call, [f"{number} " for number in range(MANY)])
