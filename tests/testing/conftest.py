"""One fault provider for all tests here, and a plain HTTP client that reports what happened."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

from lmclient.testing import FaultProvider

PATHS = {"chat": "/chat/completions", "text": "/completions", "models": "/models"}


@dataclass
class Answer:
    """What a client saw: `end` is whether the response was whole, cut off or reset."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    end: Literal["whole", "cut", "reset"] = "whole"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a stream, for bodies with one data line each; [DONE] stays text."""
        data = [block.removeprefix("data: ") for block in self.body.decode().split("\n\n") if block]
        return [one if one == "[DONE]" else json.loads(one) for one in data]

    @property
    def choices(self) -> list[Any]:
        """The first choice of each event that has one."""
        return [event["choices"][0] for event in self.events if event != "[DONE]" and event.get("choices")]

    @property
    def text(self) -> str:
        """The text of a chat stream."""
        return "".join(choice["delta"].get("content") or "" for choice in self.choices)

    @property
    def finish(self) -> list[str]:
        return [choice["finish_reason"] for choice in self.choices if choice["finish_reason"]]


def send(
    base_url: str, endpoint: str = "chat", *, stream: bool = True, timeout: float = 10, **headers: str
) -> Answer:
    """Send one well-formed request on a connection of its own."""
    url = urlsplit(base_url)
    content = {"messages": [{"role": "user", "content": "Hi"}]} if endpoint == "chat" else {"prompt": "Hi"}
    body = None if endpoint == "models" else json.dumps({"model": "m", "stream": stream, **content})
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout)
    answer = Answer()
    received = bytearray()
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, url.path + PATHS[endpoint] + f"?{url.query}", body, headers)
        response = connection.getresponse()
        answer.status = response.status
        answer.headers = {name.lower(): value for name, value in response.getheaders()}
        while piece := response.read1():
            received += piece
        if response.length:  # bytes still promised by content-length
            answer.end = "cut"
    except ConnectionResetError:
        answer.end = "reset"
    except http.client.IncompleteRead:
        answer.end = "cut"
    finally:
        connection.close()
        answer.body = bytes(received)
    return answer


@pytest.fixture(scope="session")
def provider() -> Iterator[FaultProvider]:
    with FaultProvider.running() as running:
        yield running


@pytest.fixture
def http_send() -> Any:
    return send


@pytest.fixture
def ask(provider: FaultProvider, request: pytest.FixtureRequest) -> Any:
    """`ask(scenario, endpoint="chat", stream=True, timeout=10, **headers)`; each test has its own key."""
    key = re.sub(r"[^\w-]", "-", request.node.name)

    def asking(scenario: str, endpoint: str = "chat", **options: Any) -> Answer:
        return send(provider.url(scenario, key=key), endpoint, **options)

    return asking
