"""A server that speaks as llama.cpp does, and profiles of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lmclient import AsyncClient, ModelProfile, Settings

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{{ '<|im_start|>assistant\n' }}"
)


class LlamaServer:
    """Answers text completions with `pieces`; its tokens are the words of a text."""

    def __init__(self) -> None:
        self.url = ""
        self.pieces = ["Red", "."]
        self.end: dict[str, Any] = {"usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}
        self.finish_reason: str | None = "stop"
        self.props = {"chat_template": CHATML, "bos_token": "", "eos_token": "<|im_end|>"}
        self.adds_bos = False
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.keys: list[str] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the completions that were asked for."""
        return [body for path, body in self.seen if path.endswith("/completions")]

    def paths(self) -> list[str]:
        """The paths of all requests."""
        return [path for path, _ in self.seen]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        body = json.loads(await reader.readexactly(size) or b"{}")
        path = head.split(" ", 2)[1]
        self.seen.append((path, body))
        self.keys.append(head.partition("authorization: ")[2].partition("\r\n")[0])
        status, answer = self._answer(path, body)
        length = "" if body.get("stream") else f"content-length: {len(answer)}\r\n"
        writer.write(f"HTTP/1.1 {status}\r\n{length}connection: close\r\n\r\n".encode() + answer)
        await writer.drain()
        writer.close()

    def _answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        match path:
            case "/v1/completions":
                return "200 OK", self._stream() if body.get("stream") else json.dumps(self._whole()).encode()
            case "/v1/models":
                return "200 OK", b'{"data": [{"id": "first"}]}'
            case "/props" if self.props:
                return "200 OK", json.dumps(self.props).encode()
            case "/tokenize":
                words = body["content"].split()
                if body.get("add_special") and self.adds_bos:
                    words.insert(0, "BOS")
                return "200 OK", json.dumps({"tokens": list(range(len(words)))}).encode()
            case "/apply-template":
                said = " ".join(message["content"] for message in body["messages"])
                return "200 OK", json.dumps({"prompt": f"template says {said}"}).encode()
        return "404 Not Found", b'{"error": {"message": "File Not Found", "code": 404}}'

    def _whole(self) -> dict[str, Any]:
        choice = {"index": 0, "text": "".join(self.pieces), "finish_reason": self.finish_reason}
        return {"id": "cmpl-1", "model": "m", "choices": [choice], **self.end}

    def _stream(self) -> bytes:
        texts = [{"choices": [{"index": 0, "text": piece, "finish_reason": None}]} for piece in self.pieces]
        last = {"choices": [{"index": 0, "text": "", "finish_reason": self.finish_reason}], **self.end}
        events = [f"data: {json.dumps(event)}\n\n" for event in (*texts, last)]
        return "".join((*events, "data: [DONE]\n\n")).encode()

    def profile(self, **values: Any) -> ModelProfile:
        """A profile of this server."""
        base = {
            "provider": "openai-text",
            "model": "m",
            "url": f"{self.url}/v1",
            "prompt_format": "chatml",
            "api_key": "sk-test-0123456789",
        }
        return ModelProfile(**(base | values))


@pytest.fixture
async def llama() -> AsyncIterator[LlamaServer]:
    fake = LlamaServer()
    server = await asyncio.start_server(fake.converse, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield fake
    server.close()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(settings, interceptors=[]) as opened:
        yield opened
