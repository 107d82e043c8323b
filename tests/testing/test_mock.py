"""The mock provider over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import pytest

from lmclient.testing import MockProvider


@pytest.fixture(scope="module")
def mock():
    with MockProvider.running() as provider:
        yield provider


@pytest.mark.parametrize(("endpoint", "key"), [("chat", "message"), ("text", "text")])
def test_whole_answers(mock, http_send, endpoint, key):
    answer = http_send(mock.url(), endpoint, stream=False)
    assert key in answer.json["choices"][0]
    assert answer.json["usage"]["total_tokens"] == 225


@pytest.mark.parametrize("query", ["chunks=5", "chunks=5&paced=1"])
def test_streams_have_as_many_chunks_as_asked(mock, http_send, query):
    answer = http_send(f"{mock.url()}?{query}")
    assert answer.text == " tok0 tok1 tok2 tok3 tok4"
    assert answer.finish == ["stop"]
    assert answer.events[-1] == "[DONE]"


def test_a_stream_has_200_chunks_unless_asked(mock, http_send):
    assert len(http_send(mock.url(), "text").choices) == 200 + 1  # and the finish


def test_models_lists_one(mock, http_send):
    assert [model["id"] for model in http_send(mock.url(), "models").json["data"]] == ["mock"]


def test_other_paths_are_not_found(mock):
    with socket.create_connection(("127.0.0.1", mock.port), timeout=5) as connection:
        connection.sendall(b"GET /nothing HTTP/1.1\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 404 ")


def test_delay_holds_the_answer_back(mock, http_send):
    started = time.monotonic()
    http_send(f"{mock.url()}?delay_ms=50")
    assert time.monotonic() - started >= 0.05


def test_pipelined_and_fragmented_requests_are_answered(mock):
    body = json.dumps({"model": "m", "prompt": "Hi"}).encode()
    request = b"POST /v1/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    before = mock.served
    with socket.create_connection(("127.0.0.1", mock.port), timeout=5) as connection:
        connection.sendall(request + request[:30])
        connection.sendall(request[30:])
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as file:
            answers = file.read()
    assert answers.count(b"HTTP/1.1 200 OK") == 2
    assert mock.served == before + 2


async def test_it_serves_on_the_running_loop(http_send):
    async with MockProvider.open() as provider:
        assert (await asyncio.to_thread(http_send, provider.url(), "models")).status == 200
        assert provider.served == 1


def test_stopping_closes_open_connections():
    with MockProvider.running() as provider:
        connection = socket.create_connection(("127.0.0.1", provider.port), timeout=5)
        connection.sendall(b"GET /v1/models HTTP/1.1\r\n\r\n")
        assert connection.recv(10)
    with connection, connection.makefile("rb") as file:
        assert file.read().endswith(b"}")  # and then the end, where an open connection would time out


def test_a_taken_port_is_an_os_error(mock):
    with pytest.raises(OSError, match="address already in use"), MockProvider.running(port=mock.port):
        pass
