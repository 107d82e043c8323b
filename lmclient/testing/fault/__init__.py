"""An OpenAI-compatible provider that misbehaves on purpose, one fault per path prefix.

Every fault below has been seen in production. A client under test gets the base
URL ``http://127.0.0.1:PORT/<scenario>/v1`` and needs no other preparation.

    with FaultProvider.running() as provider:            (in a thread of its own)
        base_url = provider.url("rate_limited_once", key="test-1")
        ...
        assert provider.stats()["rate_limited_once~test-1"]["requests"] == 2

    async with FaultProvider.open() as provider:         (on the running event loop)
        ...

    lmclient testing serve fault --port 8124 [--seed 0]  (port 0 picks a free one)

``python -m lmclient.testing.fault`` is the same command.

Endpoints
    POST /<scenario>[~<key>]/v1/chat/completions   a stream if the body says "stream": true
    POST /<scenario>[~<key>]/v1/completions        the same, in text completion shapes
    GET  /<scenario>[~<key>]/v1/models             one model, "mock"
    GET  /_stats                                   counters, see below

The body must be a JSON object with "model" and "messages" (or "prompt"); if not, the
answer is a plain 400 with code "fault_provider", whatever the scenario. An unknown
scenario is a 404 with the same code. Both mean that the test or the client is wrong.

Keys
    ``~<key>`` is optional. Each scenario and key has counters of its own, so that tests
    can run in parallel and "once" means once per key. Use a fresh key for every test.

A healthy answer
    Text is TEXT, in the ten PIECES when streamed, and usage is USAGE. A chat stream is:
    a chunk with the role and no text, one chunk per piece, a chunk with finish_reason,
    a chunk with usage and no choices, [DONE]. Each event is an HTTP chunk and a TCP
    write of its own. Usage is sent whether or not stream_options asks for it.

Scenarios
    [E] marks those that concern every endpoint; the others answer GET models like "ok".
    [S] exists in streams only: without "stream": true it answers like "ok".
    [C] exists in chat completions only: POST completions answers like "ok".
    Only chunks with text are counted: the one with the role comes in addition.
    Where nothing is said about a request without "stream": true, it meets the same fault.

    ok                         the healthy answer
    -- slow and silent --
    slow_first_byte        [E] 2 s before the status line
    slow_stream                50 ms between writes: 10 chunks, or the JSON body in 10 parts
    hang                   [E] reads the request and never answers
    hang_mid_stream            3 chunks, or half of the JSON body, then silence
    drip                       3 chunks, or JSON with the same text; the whole response, status
                               line included, is written byte by byte, 1 ms apart
    -- connection lost --
    reset_before_headers   [E] TCP RST in place of an answer
    reset_mid_stream           3 chunks, or half of the JSON body, then TCP RST
    truncated_stream       [S] 3 chunks, then a clean end: no finish_reason, usage or [DONE]
    no_done                [S] complete with finish_reason and usage, but no [DONE]
    truncated_json             content-length promises twice what is sent before the close; a
                               stream has a content-length here, and is cut in the same way
    http10_close               HTTP/1.0 without content-length: the close is the end
    -- HTTP errors --
    rate_limited_once      [E] 429 with "retry-after: 1", then ok
    rate_limited_ms        [E] 429 with "retry-after-ms: 200", then ok
    rate_limited_date      [E] 429 with an HTTP date 1 to 2 s ahead as retry-after, then ok
    rate_limited_forever   [E] 429 with "retry-after: 3600", always
    quota_exhausted        [E] 429 with code insufficient_quota, always: must not be retried
    server_error_once      [E] 500, then ok
    overloaded_twice       [E] 529, then 503, then ok
    bad_gateway_html       [E] 502 with an HTML page, always
    unauthorized           [E] 401 whose message repeats the key that was sent: to be redacted
    bad_request                400 with code context_length_exceeded
    not_found_model            404 with code model_not_found
    redirect               [E] 307 to the same path under "ok"
    cross_host_redirect    [E] 307 to the same path under "ok" on another host name: localhost
                               for 127.0.0.1, or the reverse. Both redirects keep the key: the
                               counters of "ok~<key>" tell what arrived there
    -- errors with status 200 --
    error_in_200               the body is {"error": {...}} with a numeric code; JSON, even if a
                               stream was asked for
    error_event                2 chunks, then data: {"error": {...}}, then a clean end without
                               [DONE]; without "stream": true as error_in_200
    malformed_event            3 chunks, a data line that is not JSON, then the other 7 chunks
                               and a healthy end; without "stream": true a body cut off in JSON
    empty_choices              choices is [] throughout; usage is sent
    null_content               content is null and there are no tool calls
    -- SSE and text encoding --
    keepalive_comments         CRLF line ends (one of them cut between CR and LF), ": ping"
                               comments, blank lines, event:, id: and retry: fields, an event
                               without data, "data:" without a space, JSON spread over several
                               data: lines; without "stream": true blank lines before the JSON
    bom_utf8                   the body starts with a UTF-8 byte order mark; a stream has no chunk
                               with the role, so that whoever loses the first event loses text
    split_utf8                 the text is UNICODE_TEXT; each emoji and CJK character is cut
                               between two writes
    invalid_utf8               a lone byte E9 (Latin-1) in the text; if invalid bytes are read as
                               U+FFFD, the text is INVALID_UTF8_TEXT
    gzip                       content-encoding: gzip; a stream is flushed after each event
    wrong_content_type         JSON as text/plain, a stream as application/json
    -- volume --
    huge_chunk                 one chunk of HUGE_SIZE (8 Mi) times "x"
    many_chunks                MANY (20 000) chunks: "0 ", "1 ", "2 ", ...
    -- finish and usage --
    content_filter             3 chunks, then finish_reason "content_filter"
    length                     3 chunks, then finish_reason "length"
    duplicate_finish       [S] finish_reason twice, then usage
    late_text_after_finish [S] the last chunk comes after finish_reason, then usage
    usage_every_chunk      [S] cumulative usage on every chunk, up to the one with finish_reason
    usage_with_choices     [S] usage after finish_reason, in a chunk that still has a choice: its
                               delta is empty and its finish_reason null
    usage_none                 no usage at all
    usage_null_fields          the details in usage are null; other chunks have "usage": null
    -- tool calls --
    tool_call_stream       [C] the two TOOL_CALLS in parallel: the arguments in 5 fragments each,
                               interleaved by index
    tool_call_no_index     [C] the same, one call after the other, in fragments without index;
                               only the first fragment of a call has its id and name
    tool_call_bad_json     [C] one call whose arguments, BAD_ARGUMENTS, are not valid JSON

Counters
    GET /_stats answers {"<scenario>" or "<scenario>~<key>": {...}} with, for each:

    requests        how many arrived (failed ones too)
    max_in_flight   how many were being answered at once, at most
    times           time.monotonic() of each request, in seconds (one clock per machine)
    authorization   for each request, whether it had an authorization, api-key or x-api-key
                    header
    aborted         how many the client gave up before the answer was complete
    connections     how many TCP connections carried the requests

The seed decides where split_utf8 and the tool call scenarios cut. Same seed, same bytes.
"""

from __future__ import annotations

from lmclient.testing.fault.scenarios import SCENARIOS
from lmclient.testing.fault.scenarios.encoding import (
    HUGE_SIZE,
    INVALID_UTF8_TEXT,
    MANY,
    UNICODE_PIECES,
    UNICODE_TEXT,
)
from lmclient.testing.fault.scenarios.tool_calls import BAD_ARGUMENTS, TOOL_CALLS
from lmclient.testing.fault.server import FaultProvider, running
from lmclient.testing.fault.shapes import CREATED, MODEL, PIECES, TEXT, USAGE, ToolCall

__all__ = [
    "BAD_ARGUMENTS",
    "CREATED",
    "HUGE_SIZE",
    "INVALID_UTF8_TEXT",
    "MANY",
    "MODEL",
    "PIECES",
    "SCENARIOS",
    "TEXT",
    "TOOL_CALLS",
    "UNICODE_PIECES",
    "UNICODE_TEXT",
    "USAGE",
    "FaultProvider",
    "ToolCall",
    "running",
]
