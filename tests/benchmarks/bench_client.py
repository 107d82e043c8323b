"""The client's own cost, against the same work in plain aiohttp and msgspec.

    python tests/benchmarks/bench_client.py

Exits with 1 if a limit is not kept.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import aiohttp
import msgspec
from measuring import compare, mock_server, report

import lmclient

CALLS = 64
STREAMS = 2
CHUNKS = 2000


class Message(msgspec.Struct):
    content: str | None = None


class Choice(msgspec.Struct):
    message: Message | None = None
    delta: Message | None = None
    finish_reason: str | None = None


class Body(msgspec.Struct):
    choices: list[Choice] = []
    usage: dict[str, object] | None = None


decode = msgspec.json.Decoder(Body).decode
HEADERS = {"authorization": "Bearer sk-benchmark", "content-type": "application/json"}


def body_of(stream: bool) -> bytes:
    body: dict[str, object] = {"model": "mock", "messages": [{"role": "user", "content": "Hello"}]}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return msgspec.json.encode(body)


async def plain_call(session: aiohttp.ClientSession, url: str) -> str:
    async with session.post(f"{url}/chat/completions", data=body_of(False), headers=HEADERS) as response:
        body = decode(await response.read())
    assert body.choices[0].message is not None
    return body.choices[0].message.content or ""


async def plain_stream(session: aiohttp.ClientSession, url: str) -> str:
    text = []
    async with session.post(url, data=body_of(True), headers=HEADERS) as response:
        async for line in response.content:
            if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                body = decode(line[6:])
                if body.choices and body.choices[0].delta is not None and body.choices[0].delta.content:
                    text.append(body.choices[0].delta.content)
    return "".join(text)


async def our_stream(client: lmclient.AsyncClient, profile: lmclient.ModelProfile) -> str:
    text = []
    async with client.stream(profile, "Hello") as stream:
        async for chunk in stream:
            text.append(chunk.text)
    return "".join(text)


async def calls(url: str, folder: Path) -> bool:
    profile = lmclient.ModelProfile(provider="openai-chat", model="mock", url=url, api_key="sk-benchmark")
    settings = lmclient.Settings(data_dir=folder)
    kept = []
    async with (
        aiohttp.ClientSession() as session,
        lmclient.AsyncClient(settings, interceptors=[]) as bare,
        lmclient.AsyncClient(settings) as full,
    ):

        async def plain() -> None:
            for _ in range(CALLS):
                await plain_call(session, url)

        async def with_bare() -> None:
            for _ in range(CALLS):
                await bare.complete(profile, "Hello")

        async def with_chain() -> None:
            for _ in range(CALLS):
                await full.complete(profile, "Hello")

        async def at_once() -> None:
            for _ in range(CALLS // 64):
                async with asyncio.TaskGroup() as group:
                    for _ in range(64):
                        group.create_task(bare.complete(profile, "Hello"))

        kept.append(report("one call, interceptors=[]", *await compare(plain, with_bare), 1.4, CALLS))
        kept.append(report("one call, default chain", *await compare(plain, with_chain), 2.2, CALLS))
        one, many, _ = await compare(with_bare, at_once)
        number = CALLS
        ratio = (many / number) / (one / CALLS)
        kept.append(report("64 calls at once (to one at a time)", one / CALLS, many / number, ratio, 1.0))
    return all(kept)


async def streams(url: str) -> bool:
    kept = []
    async with aiohttp.ClientSession() as session, lmclient.AsyncClient(interceptors=[]) as bare:
        for paced in (0, 1):
            query = {"chunks": str(CHUNKS), "paced": str(paced)}
            target = f"{url}/chat/completions?chunks={CHUNKS}&paced={paced}"
            profile = lmclient.ModelProfile(
                provider="openai-chat", model="mock", url=url, api_key="sk-benchmark", extra_query=query
            )

            async def plain(target: str = target) -> None:
                for _ in range(STREAMS):
                    await plain_stream(session, target)

            async def ours(profile: lmclient.ModelProfile = profile) -> None:
                for _ in range(STREAMS):
                    await our_stream(bare, profile)

            name = f"one streamed chunk, {'a write each' if paced else 'many in a write'}"
            kept.append(report(name, *await compare(plain, ours), 1.8, STREAMS * CHUNKS))
    return all(kept)


async def main() -> bool:
    with mock_server() as url, tempfile.TemporaryDirectory() as folder:
        return all([await calls(url, Path(folder)), await streams(url)])


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
