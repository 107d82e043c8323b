"""Callers who leave, callers who do not read, and many at once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from lmclient import Settings
from lmclient.server.serving import open_gateway
from lmclient.testing import FaultProvider, MockProvider, ScriptedModel

HELLO = [{"role": "user", "content": "Hello"}]
FaultSettings = Callable[..., Settings]


def request(body: dict[str, Any], path: str = "/v1/chat/completions") -> bytes:
    data = json.dumps({"model": "m", "messages": HELLO, **body}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def connect(url: str, sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = int(url.removesuffix("/v1").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**12)
    writer.write(sent)
    await writer.drain()
    return reader, writer


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
        reader, writer = await connect(url, request({"stream": stream}))
        await counted(fault, f"{scenario}~{key}", "requests", 5)
        if stream and scenario == "hang_mid_stream":
            await reader.readuntil(b'"content":"Th')
        writer.close()
        await counted(fault, f"{scenario}~{key}", "aborted", 1)
        await writer.wait_closed()


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
        reader, writer = await connect(url, request({"stream": True}))
        await reader.readuntil(b'"content":"Th')
        writer.close()
        await counted(fault, "hang_mid_stream~booked", "aborted", 1)
        await writer.wait_closed()
    async with lmclient.AsyncClient(settings) as client:
        (record,) = await client.spend.records()
    assert (record.status, record.estimated) == ("cancelled", True)


async def test_a_reader_who_stops_stops_the_upstream(tmp_path: Path, mock_process: str) -> None:
    """The upstream, another process, would send 60 MB; what is not read stays there."""
    settings = mock_settings(tmp_path, mock_process, 300_000)
    async with open_gateway(settings) as url:
        start = resident()
        reader, writer = await connect(url, request({"stream": True}))
        await reader.readuntil(b"role")
        await asyncio.sleep(0.3)
        stopped = resident()
        await asyncio.sleep(0.3)
        later = resident()
        writer.transport.abort()
    assert stopped - start < 16 * 2**20
    assert later - stopped < 2**20


async def test_a_slow_reader_gets_everything(tmp_path: Path) -> None:
    async with (
        MockProvider.open() as upstream,
        open_gateway(mock_settings(tmp_path, upstream.url(), 20_000)) as url,
    ):
        reader, writer = await connect(url, request({"stream": True}))
        await reader.readuntil(b"role")
        await asyncio.sleep(0.1)
        count = 0
        async with asyncio.timeout(30):
            while b"[DONE]" not in (line := await reader.readline()):
                count += line.count(b'"content":')
        writer.close()
        await writer.wait_closed()
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
    async with open_gateway(fault_settings("hang_mid_stream", "first-chunk")) as url:
        reader, writer = await connect(url, request({"stream": True}))
        async with asyncio.timeout(2):
            await reader.readuntil(b'"content":"Th')
        writer.transport.abort()


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


def mock_settings(directory: Path, upstream: str, chunks: int) -> Settings:
    profiles = directory / "profiles"
    profiles.mkdir(exist_ok=True)
    (profiles / "mock.toml").write_text(
        f'provider = "openai-chat"\nmodel = "mock"\nurl = "{upstream}"\n'
        f'extra_query = {{ chunks = "{chunks}" }}\n'
    )
    return Settings(profiles_dir=profiles, data_dir=directory / "data", categories={"m": "mock"})


def resident() -> int:
    """The memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
