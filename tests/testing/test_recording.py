"""Recording: what is kept of an exchange, what is not, and that it can be played."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmclient import AsyncClient, AuthenticationError, ModelProfile, Settings, StreamInterruptedError
from lmclient.core.http import HttpRequest
from lmclient.testing import FaultProvider, ReplayProvider, record
from lmclient.testing.exchange import load_exchanges

KEY = "sk-proj-Qm9vbWVyYW5n0123456789"
COOKIE = "c00kie-of-the-session"
ORGANISATION = "acme-research-lab"
PIECES = (
    b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": "lo"}, "finish_reason": "st',
    b'op"}]}\n\ndata: [DONE]\n\n',
)


class Response:
    """A response in pieces, the last of which may be an error."""

    def __init__(self, status: int, headers: Mapping[str, str], pieces: tuple[Any, ...]) -> None:
        self.status = status
        self.headers = headers
        self._pieces = list(pieces)

    @property
    def at_end(self) -> bool:
        return not self._pieces

    async def read(self) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def aclose(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Server:
    """A transport that answers every request with this response."""

    def __init__(self, *pieces: Any, status: int = 200, **headers: str) -> None:
        self._pieces = pieces
        self._status = status
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.closed = False

    async def send(self, request: HttpRequest) -> Response:
        headers = {"content-type": "application/json", "set-cookie": f"sid={COOKIE}; path=/", **self._headers}
        return Response(self._status, headers, self._pieces)

    async def aclose(self) -> None:
        self.closed = True


class StreamServer(Server):
    def __init__(self, *pieces: Any) -> None:
        super().__init__(*(pieces or PIECES), content_type="text/event-stream")


PROFILE = ModelProfile(
    provider="openai-chat",
    model="m",
    url="http://api.example.com/v1",
    api_key=KEY,
    headers={"OpenAI-Organization": ORGANISATION, "cookie": f"a=1; sid={COOKIE}"},
    extra_query={"key": KEY},
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")


def the_only_file(directory: Path) -> str:
    (file,) = directory.glob("*.json")
    return file.read_text()


async def recorded(
    settings: Settings, directory: Path, server: Server, *, stream: bool = False, **options: Any
):
    """The only file that one call leaves, as text."""
    async with AsyncClient(settings, interceptors=[], transport=record(directory, server)) as client:
        if stream:
            async with client.stream(PROFILE, "Hi", **options) as answer:
                await answer.wait()
        else:
            await client.complete(PROFILE, "Hi", **options)
    return the_only_file(directory)


def answer(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()


async def test_request_and_response_are_kept(settings, tmp_path):
    exchange = json.loads(await recorded(settings, tmp_path / "x", Server(answer("Hello"), retry_after="3")))
    assert exchange["name"] == "openai-chat.api.example.com.0"
    assert (exchange["protocol"], exchange["host"], exchange["path"], exchange["stream"]) == (
        "openai-chat",
        "api.example.com",
        "/v1/chat/completions",
        False,
    )
    assert exchange["request"]["messages"] == [{"role": "user", "content": "Hi"}]
    assert exchange["response"] == {
        "status": 200,
        "content_type": "application/json",
        "retry_after": "3",
        "body": answer("Hello").decode(),
        "timing": [],
    }


async def test_a_stream_keeps_its_pieces_and_their_times(settings, tmp_path):
    exchange = json.loads(await recorded(settings, tmp_path / "x", StreamServer(), stream=True))
    timing = exchange["response"]["timing"]
    assert [size for _, size in timing] == [len(piece) for piece in PIECES]
    assert [seconds for seconds, _ in timing] == sorted(seconds for seconds, _ in timing)
    assert exchange["stream"] is True


@pytest.mark.parametrize("secret", [KEY, COOKIE, ORGANISATION, "org-0123456789abcdefghij", "sk-pr***6789"])
async def test_no_secret_is_kept_even_where_the_server_repeats_it(settings, tmp_path, secret):
    echo = f"Hello {KEY}, {ORGANISATION}, {COOKIE}, org-0123456789abcdefghij, sk-pr***6789, é"
    text = await recorded(
        settings,
        tmp_path / "x",
        Server(answer(echo), openai_organization=ORGANISATION),
        extra_body={"server": {"authorization": f"Bearer {KEY}"}, "note": f"my key is {KEY}"},
    )
    assert secret not in text
    assert "Hello ****" in text


async def test_keys_in_errors_are_not_kept(settings, tmp_path):
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}).encode()
    with pytest.raises(AuthenticationError):
        await recorded(settings, tmp_path / "x", Server(body, status=401))
    (file,) = (tmp_path / "x").iterdir()
    assert KEY not in file.read_text()


async def test_taking_secrets_out_leaves_the_timing_right(settings, tmp_path):
    pieces = (
        f'data: {{"choices": [{{"delta": {{"content": "{KEY[:9]}'.encode(),
        f'{KEY[9:]}"}}, "finish_reason": "stop"}}]}}\n\n'.encode(),
    )
    exchange = json.loads(await recorded(settings, tmp_path / "x", StreamServer(*pieces), stream=True))
    assert KEY not in json.dumps(exchange)
    assert len(exchange["response"]["body"]) == sum(size for _, size in exchange["response"]["timing"])


async def test_words_that_look_like_secrets_stay(settings, tmp_path):
    text = await recorded(
        settings,
        tmp_path / "x",
        Server(answer("user-friendly sk-learn keywords")),
        extra_body={"keywords": "friendly"},
    )
    assert "user-friendly sk-learn keywords" in text


async def test_accounts_in_hosts_and_paths_have_placeholders(tmp_path):
    async with record(tmp_path, Server(b"{}")) as transport:
        for url in (
            "https://acme.openai.azure.com/openai/v1/chat/completions?api-key=k",
            "https://vertex.example.com/v1/projects/acme-1/locations/x/models/g:generateContent",
        ):
            response = await transport.send(HttpRequest(url=url))
            await response.read()
    kept = [json.loads(file.read_text()) for file in sorted(tmp_path.iterdir())]
    assert {(one["host"], one["path"]) for one in kept} == {
        ("vertex.example.com", "/v1/projects/example/locations/x/models/g:generateContent"),
        ("example-resource.openai.azure.com", "/openai/v1/chat/completions"),
    }


async def test_each_exchange_is_a_file_of_its_own(settings, tmp_path):
    async with AsyncClient(
        settings, interceptors=[], transport=record(tmp_path / "x", Server(answer("Hi")))
    ) as client:
        await client.complete(PROFILE, "a")
        await client.complete(PROFILE, "b")
    assert sorted(file.stem for file in (tmp_path / "x").iterdir()) == [
        "openai-chat.api.example.com.0",
        "openai-chat.api.example.com.1",
    ]


async def test_a_broken_stream_is_kept_as_far_as_it_came(settings, tmp_path):
    broken = StreamServer(PIECES[0], StreamInterruptedError("lost"))
    with pytest.raises(StreamInterruptedError):
        await recorded(settings, tmp_path / "x", broken, stream=True)
    (file,) = (tmp_path / "x").iterdir()
    exchange = json.loads(file.read_text())
    assert exchange["response"]["body"] == PIECES[0].decode()
    assert "lost" in exchange["note"]


async def test_a_stream_that_was_left_is_kept_as_far_as_it_came(settings, tmp_path):
    directory = tmp_path / "x"
    async with (
        AsyncClient(settings, interceptors=[], transport=record(directory, StreamServer())) as client,
        client.stream(PROFILE, "Hi") as stream,
    ):
        await anext(stream)
    (file,) = directory.iterdir()
    assert "left" in json.loads(file.read_text())["note"]


async def test_a_given_transport_stays_open(tmp_path):
    server = Server()
    async with record(tmp_path, server):
        pass
    assert not server.closed


async def test_what_was_recorded_is_played_without_a_key(settings, tmp_path, fault_provider: FaultProvider):
    directory = tmp_path / "x"
    real = ModelProfile(
        provider="openai-chat", model="m", url=fault_provider.url("ok", key="recording"), api_key=KEY
    )
    async with (
        record(directory) as transport,
        AsyncClient(settings, interceptors=[], transport=transport) as client,
        client.stream(real, "Hi") as stream,
    ):
        original = await stream.wait()
    (name,) = load_exchanges(directory)
    async with ReplayProvider.open(directory) as provider, AsyncClient(settings, interceptors=[]) as client:
        played = ModelProfile(provider="openai-chat", model="m", url=provider.url(name, "v1"))
        async with client.stream(played, "Hi") as stream:
            again = await stream.wait()
    assert (again.text, again.usage, again.finish_reason) == (
        original.text,
        original.usage,
        original.finish_reason,
    )
