"""Callers who leave, callers who do not read, and many at once."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import openai
import pytest

from lmclient import Settings
from lmclient.server import endpoint
from lmclient.server.serving import open_gateway
from lmclient.testing import FaultProvider, MockProvider, ScriptedModel

HELLO = [{"role": "user", "content": "Hello"}]
FIRST_PIECE = b'"content":"The'
FaultSettings = Callable[..., Settings]


def request(body: dict[str, Any], path: str = "/v1/chat/completions") -> bytes:
    data = json.dumps({"model": "m", "messages": HELLO, **body}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


@asynccontextmanager
async def connected(url: str, sent: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """A connection with small buffers, so that a reader who stops is felt at once."""
    port = int(url.removesuffix("/v1").rpartition(":")[2])
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=2**12)
    try:
        writer.write(sent)
        yield reader
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def counted(fault: FaultProvider, name: str, counter: str, within: float) -> None:
    """Returns once the provider has counted one; fails if that takes more than `within` seconds."""
    deadline = time.monotonic() + within
    while fault.stats().get(name, {}).get(counter, 0) == 0:
        assert time.monotonic() < deadline, f"{name}: nothing {counter} within {within} s"
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("scenario", ["hang", "hang_mid_stream"])
async def test_a_dropped_connection_cancels_the_upstream_request(
    fault: FaultProvider, fault_settings: FaultSettings, scenario: str, stream: bool
) -> None:
    key = f"drop-{stream}"
    async with open_gateway(fault_settings(scenario, key)) as url:
        async with connected(url, request({"stream": stream})) as reader:
            await counted(fault, f"{scenario}~{key}", "requests", 5)
            if stream and scenario == "hang_mid_stream":
                await reader.readuntil(FIRST_PIECE)
        await counted(fault, f"{scenario}~{key}", "aborted", 1)


async def test_the_sdks_closed_stream_cancels_the_upstream_request(
    fault: FaultProvider, fault_settings: FaultSettings
) -> None:
    async with (
        open_gateway(fault_settings("hang_mid_stream", "sdk-close")) as url,
        openai.AsyncOpenAI(base_url=url, api_key="none") as client,
    ):
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        await anext(stream.__aiter__())
        await stream.close()
        await counted(fault, "hang_mid_stream~sdk-close", "aborted", 1)


async def test_a_caller_who_left_is_booked_as_cancelled(
    fault: FaultProvider, fault_settings: FaultSettings
) -> None:
    import lmclient

    settings = fault_settings("hang_mid_stream", "booked")
    async with open_gateway(settings) as url:
        async with connected(url, request({"stream": True})) as reader:
            await reader.readuntil(FIRST_PIECE)
        await counted(fault, "hang_mid_stream~booked", "aborted", 1)
    async with lmclient.AsyncClient(settings) as client:
        (record,) = await client.spend.records()
    assert (record.status, record.estimated) == ("cancelled", True)


async def test_a_reader_who_stops_stops_the_upstream(tmp_path: Path, mock_process: str) -> None:
    """The upstream, another process, would send 19 MB; what is not read stays there."""
    settings = mock_settings(tmp_path, mock_process, 100_000)
    async with open_gateway(settings) as url:
        start = stopped = resident()
        async with connected(url, request({"stream": True})) as reader:
            await reader.readuntil(b"role")
            growing = True
            while growing:
                await asyncio.sleep(0.3)
                growing, stopped = resident() - stopped > 2**18, resident()
    assert stopped - start < 8 * 2**20


async def test_a_reader_who_never_reads_is_left_when_the_calls_time_is_over(
    tmp_path: Path, mock_process: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(endpoint, "GRACE", 0.0)
    settings = mock_settings(tmp_path, mock_process, 60_000, "[timeouts]\ntotal = 3\n")
    async with open_gateway(settings) as url, connected(url, request({"stream": True})):
        deadline = time.monotonic() + 10
        while "did not read its answer" not in caplog.text:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_a_slow_reader_gets_everything(tmp_path: Path) -> None:
    async with (
        MockProvider.open() as upstream,
        open_gateway(mock_settings(tmp_path, upstream.url(), 20_000)) as url,
        connected(url, request({"stream": True})) as reader,
    ):
        await asyncio.sleep(0.1)
        count = 0
        async with asyncio.timeout(30):
            while b"[DONE]" not in (line := await reader.readline()):
                count += line.count(b'"content":')
    assert count == 20_001  # the one with the role has an empty text


async def test_two_hundred_streams_at_once(model: ScriptedModel, tmp_path: Path) -> None:
    model.reply(lambda asked: f"answer to {asked.prompt}", times=None)
    model.rendezvous(200, timeout=20)
    async with (
        open_gateway(model.settings(tmp_path)) as url,
        openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):

        async def ask(number: int) -> str:
            messages = [{"role": "user", "content": str(number)}]
            stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        answers = await asyncio.gather(*map(ask, range(200)))
    assert answers == [f"answer to {number}" for number in range(200)]
    assert model.max_in_flight == 200


async def test_the_first_chunk_does_not_wait_for_the_last(
    fault: FaultProvider, fault_settings: FaultSettings
) -> None:
    async with (
        open_gateway(fault_settings("hang_mid_stream", "first-chunk")) as url,
        connected(url, request({"stream": True})) as reader,
        asyncio.timeout(5),
    ):
        await reader.readuntil(FIRST_PIECE)


@pytest.fixture
def mock_process() -> Iterator[str]:
    """The URL of a mock provider in a process of its own."""
    command = [sys.executable, "-m", "lmclient.testing.mock", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def mock_settings(directory: Path, upstream: str, chunks: int, more: str = "") -> Settings:
    profiles = directory / "profiles"
    profiles.mkdir(exist_ok=True)
    (profiles / "mock.toml").write_text(
        f'provider = "openai-chat"\nmodel = "mock"\nurl = "{upstream}"\n'
        f'extra_query = {{ chunks = "{chunks}" }}\n{more}'
    )
    return Settings(profiles_dir=profiles, data_dir=directory / "data", categories={"m": "mock"})


def resident() -> int:
    """The memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
