"""What the gateway adds to the client's own cost, against a plain proxy on Starlette and aiohttp.

    python tests/benchmarks/bench_gateway.py

Each server runs in a process of its own, in front of the same mock provider, and is asked by a third
one, 16 requests at a time. It prints the CPU time of the servers per request and per streamed chunk.
The client's own cost is that of the same calls made by `AsyncClient`, measured in the same run. Exits
with 1 if the gateway adds more than 1.5 ms to a request or 40 µs to a chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import resource
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
from measuring import cpu_of, mock_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import lmclient
from lmclient.server.serving import listen, open_gateway

CALLERS = 16
CALLS = 320
CHUNKS = 2000
ROUNDS = 7
PER_CALL = 1500e-6
PER_CHUNK = 40e-6
Open = Callable[[str, Path], contextlib.AbstractAsyncContextManager[str]]


def settings(upstream: str, folder: Path) -> lmclient.Settings:
    """Settings whose category "m" is the mock provider; every event is a write of its own."""
    profiles = folder / "profiles"
    profiles.mkdir(exist_ok=True)
    (profiles / "mock.toml").write_text(
        f'provider = "openai-chat"\nmodel = "mock"\nurl = "{upstream}"\napi_key = "sk-benchmark"\n'
        f'extra_query = {{ chunks = "{CHUNKS}", paced = "1" }}\n[cost]\ninput = "1"\noutput = "2"\n'
    )
    return lmclient.Settings(profiles_dir=profiles, data_dir=folder / "data", categories={"m": "mock"})


@contextlib.asynccontextmanager
async def gateway(upstream: str, folder: Path) -> AsyncIterator[str]:
    async with open_gateway(settings(upstream, folder)) as url:
        yield url


@contextlib.asynccontextmanager
async def plain_proxy(upstream: str, folder: Path) -> AsyncIterator[str]:
    """The least that stands between a caller and a provider: bytes go through as they are."""
    import uvicorn

    session = aiohttp.ClientSession()

    async def chat(request: Request) -> Response:
        data = await request.body()
        url = f"{upstream}/chat/completions?chunks={CHUNKS}&paced=1"
        answer = await session.post(url, data=data, headers={"authorization": "Bearer sk-benchmark"})
        if answer.content_type != "text/event-stream":
            return Response(await answer.read(), media_type="application/json")
        return StreamingResponse(answer.content.iter_any(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    sockets = listen("127.0.0.1", 0)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=75)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets))
    yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}/v1"
    server.should_exit = True
    await serving
    await session.close()


def run_server(open_server: Open, upstream: str, folder: Path, connection: Connection) -> None:
    """Serves until told to stop, and answers every other message with the CPU seconds used so far."""

    async def serve() -> None:
        async with open_server(upstream, folder) as url:
            connection.send(url)
            while await asyncio.to_thread(connection.recv) != "stop":
                used = resource.getrusage(resource.RUSAGE_SELF)
                connection.send(used.ru_utime + used.ru_stime)

    asyncio.run(serve())


class Server:
    """A server in a process of its own."""

    def __init__(self, open_server: Open, upstream: str, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=run_server, args=(open_server, upstream, folder, theirs))
        self._process.start()
        self.url: str = self._connection.recv()

    def cpu(self) -> float:
        """The CPU seconds that it has used."""
        self._connection.send("cpu")
        seconds: float = self._connection.recv()
        return seconds

    def stop(self) -> None:
        self._connection.send("stop")
        self._process.join()


@contextlib.contextmanager
def running(open_server: Open, upstream: str, folder: Path) -> Iterator[Server]:
    server = Server(open_server, upstream, folder)
    try:
        yield server
    finally:
        server.stop()


async def ask(session: aiohttp.ClientSession, url: str, stream: bool) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": stream}
    async with session.post(f"{url}/chat/completions", json=body) as answer:
        assert answer.status == 200
        size = 0
        async for data in answer.content.iter_any():
            size += len(data)
        assert size > (CHUNKS * 100 if stream else 100)


async def served(server: Server, session: aiohttp.ClientSession, calls: int, stream: bool) -> float:
    """CPU seconds of the server for the calls."""
    before = server.cpu()
    await at_once(calls, lambda: ask(session, server.url, stream))
    return server.cpu() - before


async def by_client(client: lmclient.AsyncClient, calls: int, stream: bool) -> float:
    """CPU seconds of the same calls made by the client."""

    async def call() -> None:
        if stream:
            async with client.stream("m", "Hello") as answer:
                await answer.wait()
        else:
            await client.complete("m", "Hello")

    return await cpu_of(lambda: at_once(calls, call))


async def at_once(calls: int, call: Callable[[], Awaitable[None]]) -> None:
    """Makes the calls, `CALLERS` of them at a time."""
    left = iter(range(calls))

    async def caller() -> None:
        for _ in left:
            await call()

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def compare(name: str, calls: int, unit: int, stream: bool, limit: float, measure: Measure) -> bool:
    """Prints what the gateway adds to one of `unit` pieces of work; whether the limit was kept."""
    await measure(max(1, calls // 10), stream)
    rounds = [[seconds / unit for seconds in await measure(calls, stream)] for _ in range(ROUNDS)]
    ours, plain, client = (statistics.median(column) for column in zip(*rounds, strict=True))
    added = statistics.median(gateway - client for gateway, _, client in rounds)
    ratio = statistics.median(gateway / plain for gateway, plain, _ in rounds)
    kept = added <= limit
    print(
        f"{name:14} gateway {ours * 1e6:7.1f} µs   client alone {client * 1e6:7.1f} µs   "
        f"added {added * 1e6:7.1f} µs (limit {limit * 1e6:.0f})   plain proxy {plain * 1e6:7.1f} µs   "
        f"ratio {ratio:.2f}   {'ok' if kept else 'TOO SLOW'}",
        flush=True,
    )
    return kept


Measure = Callable[[int, bool], Awaitable[tuple[float, float, float]]]


async def main() -> bool:
    with tempfile.TemporaryDirectory() as name, mock_server() as upstream:
        folder = Path(name)
        with running(gateway, upstream, folder) as ours, running(plain_proxy, upstream, folder) as plain:
            async with (
                aiohttp.ClientSession() as session,
                lmclient.AsyncClient(settings(upstream, folder)) as client,
            ):

                async def measure(calls: int, stream: bool) -> tuple[float, float, float]:
                    return (
                        await served(ours, session, calls, stream),
                        await served(plain, session, calls, stream),
                        await by_client(client, calls, stream),
                    )

                whole = await compare("one request", CALLS, CALLS, False, PER_CALL, measure)
                chunk = await compare("one chunk", 4, 4 * CHUNKS, True, PER_CHUNK, measure)
    return whole and chunk


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
