"""The replay provider over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time

import pytest

from lmclient.testing import ReplayProvider

STREAM = 'data: {"choices":[{"index":0,"delta":{"content":"Rhône, 🌊"}}]}\n\ndata: [DONE]\n\n'
EXCHANGES = {
    "stream": {
        "path": "/v1/chat/completions",
        "response": {"body": STREAM, "content_type": "text/event-stream"},
    },
    "limited": {
        "path": "/v1/chat/completions",
        "response": {"body": '{"error": {}}', "status": 429, "retry_after": "7"},
    },
    "overloaded": {"path": "/v1/messages", "response": {"body": "{}", "status": 529}},
    "gemini": {"path": "/v1beta/models/g:streamGenerateContent", "response": {"body": "[]"}},
}


@pytest.fixture(scope="module")
def replay():
    with ReplayProvider.running(EXCHANGES) as provider:
        yield provider


def call(provider, path, method="POST", body='{"a": [1]}', **headers):
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=5)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def pieces(provider, path):
    """The HTTP chunks of a stream, as they were framed."""
    with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n".encode())
        with connection.makefile("rb") as file:
            _head, _, framed = file.read().partition(b"\r\n\r\n")
    chunks = []
    while framed != b"0\r\n\r\n":
        size, _, rest = framed.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        framed = rest[int(size, 16) + 2 :]
    return chunks


def test_a_recorded_response_is_served_with_its_status_and_headers(replay):
    response, content = call(replay, "/limited/v1/chat/completions")
    assert (response.status, content) == (429, b'{"error": {}}')
    assert response.headers["retry-after"] == "7"
    assert response.headers["content-length"] == "13"


def test_a_status_of_a_provider_of_its_own_is_served(replay):
    assert call(replay, "/overloaded/v1/messages")[0].status == 529


def test_url_joins_name_and_prefix(replay):
    assert replay.url("stream", "v1") == f"http://127.0.0.1:{replay.port}/stream/v1"


def test_a_stream_is_one_chunk_without_split(replay):
    assert pieces(replay, "/stream/v1/chat/completions") == [STREAM.encode()]


@pytest.mark.parametrize("split", [1, 7])
def test_split_cuts_the_stream_into_pieces_of_that_size(split):
    with ReplayProvider.running(EXCHANGES, split=split) as provider:
        chunks = pieces(provider, "/stream/v1/chat/completions")
    assert b"".join(chunks) == STREAM.encode()
    assert {len(chunk) for chunk in chunks[:-1]} == {split}


def test_split_leaves_a_plain_body_whole_for_the_client():
    with ReplayProvider.running(EXCHANGES, split=1) as provider:
        assert call(provider, "/limited/v1/chat/completions")[1] == b'{"error": {}}'


def test_only_the_first_and_last_segment_of_a_path_are_compared(replay):
    assert call(replay, "/gemini/v9/tuned/g%3AstreamGenerateContent?alt=sse")[0].status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/nobody/v1/messages", 404, "unknown_exchange"),
        ("GET", "/_requests/nobody", 404, "unknown_exchange"),
        ("POST", "/stream/v1/messages", 404, "wrong_path"),
        ("DELETE", "/stream/v1/chat/completions", 405, "method_not_allowed"),
    ],
)
def test_other_requests_are_named_errors(replay, method, path, status, code):
    response, content = call(replay, path, method)
    assert (response.status, json.loads(content)["error"]["code"]) == (status, code)


def test_nonsense_is_a_bad_request(replay):
    with socket.create_connection(("127.0.0.1", replay.port), timeout=5) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_requests_are_kept_without_credentials(replay):
    call(replay, "/gemini/v1beta/models/g:streamGenerateContent?key=planted&alt=sse", authorization="planted")
    sent = replay.requests["gemini"][-1]
    assert sent["body"] == {"a": [1]}
    assert sent["query"] == "key=redacted&alt=sse"
    assert "planted" not in json.dumps(sent)


def test_requests_are_served_too(replay):
    call(replay, "/overloaded/v1/messages", body="not JSON")
    served = json.loads(call(replay, "/_requests/overloaded", "GET", None)[1])
    assert served == list(replay.requests["overloaded"])
    assert served[-1]["body"] == "not JSON"


def test_recorded_timing_is_played():
    timing = [[0.05, 10], [0.15, 5]]
    timed = {**EXCHANGES["stream"], "response": {**EXCHANGES["stream"]["response"], "timing": timing}}
    with ReplayProvider.running({"timed": timed}) as provider:
        started = time.monotonic()
        chunks = pieces(provider, "/timed/v1/chat/completions")
    assert time.monotonic() - started >= 0.15
    assert [len(chunk) for chunk in chunks] == [10, 5, len(STREAM.encode()) - 15]


async def test_stopping_does_not_wait_for_recorded_times():
    timed = {"path": "/x", "response": {"body": "late", "timing": [[3600, 4]]}}
    async with asyncio.timeout(5), ReplayProvider.open({"timed": timed}) as provider:
        reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
        writer.write(b"GET /timed/x HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_a_directory_is_served_on_the_running_loop(tmp_path):
    (tmp_path / "rivers.json").write_text(json.dumps(EXCHANGES["limited"]))
    async with ReplayProvider.open(tmp_path, 0, 7) as provider:
        response, _ = await asyncio.to_thread(call, provider, "/rivers/v1/chat/completions")
    assert response.status == 429


def test_a_taken_port_is_an_os_error(replay):
    with pytest.raises(OSError, match="address already in use"), ReplayProvider.running({}, replay.port):
        pass
