"""The fault provider as a server: URLs, counters, misuse, start and stop."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import ExitStack

import pytest

from lmclient.testing import FaultProvider, fault
from lmclient.testing.fault import SCENARIOS


def test_every_scenario_is_documented():
    documented = {line.split()[0] for line in (fault.__doc__ or "").splitlines() if line.startswith("    ")}
    assert set(SCENARIOS) <= documented


def test_url_of_an_unknown_scenario_is_a_key_error(provider):
    with pytest.raises(KeyError, match="no_such_fault"):
        provider.url("no_such_fault")


def test_url_without_key(provider):
    assert provider.url("ok") == f"http://127.0.0.1:{provider.port}/ok/v1"


def test_each_key_has_counters_of_its_own(provider, http_send):
    statuses = [http_send(provider.url("server_error_once", key=key)).status for key in ("a", "b", "a")]
    assert statuses == [500, 500, 200]
    assert provider.stats()["server_error_once~a"]["requests"] == 2


def test_counters_tell_whether_a_key_was_sent(provider, http_send):
    url = provider.url("ok", key="credentials")
    http_send(url)
    http_send(url, **{"x-api-key": "secret"})
    assert provider.stats()["ok~credentials"]["authorization"] == [False, True]


def test_counters_know_connections_and_times(provider):
    connection = http.client.HTTPConnection("127.0.0.1", provider.port)
    for _ in range(3):
        connection.request("GET", "/ok~kept/v1/models")
        connection.getresponse().read()
    connection.close()
    counters = provider.stats()["ok~kept"]
    assert (counters["requests"], counters["connections"], len(counters["times"])) == (3, 1, 3)
    assert counters["times"] == sorted(counters["times"])


def test_counters_know_how_many_were_in_flight(provider, http_send):
    with ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", provider.port)))
            connection.sendall(b"GET /hang~parallel/v1/models HTTP/1.1\r\n\r\n")
        http_send(provider.url("ok", key="after"))  # by the time it is answered, all three were read
    assert provider.stats()["hang~parallel"]["max_in_flight"] == 3


def test_a_client_that_hangs_up_is_counted_as_aborted(provider, http_send):
    body = b'{"model": "m", "prompt": "Hi", "stream": true}'
    head = b"POST /hang_mid_stream~left/v1/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as connection:
        connection.sendall(head + body)
        assert connection.recv(10)
    http_send(provider.url("ok", key="after"))  # by the time it is answered, the close was seen
    assert provider.stats()["hang_mid_stream~left"]["aborted"] == 1


def test_stats_are_served_too(provider, http_send):
    http_send(provider.url("ok", key="served"))
    connection = http.client.HTTPConnection("127.0.0.1", provider.port)
    connection.request("GET", "/_stats")
    served = json.loads(connection.getresponse().read())
    connection.close()
    assert served["ok~served"] == provider.stats()["ok~served"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/no_such_fault/v1/completions", '{"model": "m", "prompt": "x"}', 404),
        ("POST", "/hang/v1/completions", "not JSON", 400),
        ("POST", "/hang/v1/completions", '{"prompt": "x"}', 400),
        ("POST", "/hang/v1/chat/completions", '{"model": "m", "messages": []}', 400),
        ("GET", "/hang/v1/completions", None, 400),
        ("GET", "/hang/v1/engines", None, 400),
    ],
)
def test_misuse_is_named_whatever_the_scenario(provider, method, path, body, status):
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=5)
    connection.request(method, path, body)
    response = connection.getresponse()
    error = json.loads(response.read())["error"]
    connection.close()
    assert (response.status, error["code"]) == (status, "fault_provider")


def test_chunked_request_bodies_are_read(provider):
    connection = http.client.HTTPConnection("127.0.0.1", provider.port)
    parts = [b'{"model": "m", ', b'"prompt": "x"}']
    connection.request("POST", "/ok/v1/completions", iter(parts), encode_chunked=True)
    status = connection.getresponse().status
    connection.close()
    assert status == 200


def test_the_seed_decides_where_is_cut(http_send):
    def tool_calls(seed):
        with FaultProvider.running(seed=seed) as provider:
            return http_send(provider.url("tool_call_stream")).body

    assert tool_calls(1) == tool_calls(1)
    assert tool_calls(1) != tool_calls(2)


def test_a_taken_port_is_an_os_error(provider):
    with pytest.raises(OSError, match="address already in use"), FaultProvider.running(port=provider.port):
        pass


def test_stopping_ends_open_connections():
    with fault.running() as provider:
        connection = socket.create_connection(("127.0.0.1", provider.port), timeout=5)
        connection.sendall(b"GET /hang/v1/models HTTP/1.1\r\n\r\n")
        while not provider.stats():
            pass
    assert connection.recv(1) == b""
    connection.close()


def test_an_error_in_the_block_reaches_the_caller():
    with pytest.raises(ZeroDivisionError), FaultProvider.running():
        _ = 1 / 0
