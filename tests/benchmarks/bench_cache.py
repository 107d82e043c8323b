"""A hit of the cache, against the same call made with `interceptors=[]`.

    python tests/benchmarks/bench_cache.py

Exits with 1 if the limit is not kept by the cache on disk, which is the default. That on Redis, which
asks a server as the call does, is measured beside it where there is a `redis-server`.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import compare, mock_server, report

import lmclient

CALLS = 64
LIMIT = 0.5


async def hits(
    name: str, url: str, folder: str, limit: float | None = LIMIT, *, booked: bool = False, **cache: Any
) -> bool:
    """Compares hits of a cache with these settings, with or without their rows in the ledger."""
    profile = lmclient.ModelProfile(provider="openai-chat", model="mock", url=url, api_key="sk-benchmark")
    settings = lmclient.Settings(
        data_dir=Path(folder, name), cache={"enabled": True, **cache}, spend={"enabled": booked}
    )
    async with (
        lmclient.AsyncClient(settings, interceptors=[]) as bare,
        lmclient.AsyncClient(settings) as cached,
    ):
        assert (await cached.complete(profile, "Hello")).cached is False

        async def without() -> None:
            for _ in range(CALLS):
                await bare.complete(profile, "Hello")

        async def hit() -> None:
            for _ in range(CALLS):
                completion = await cached.complete(profile, "Hello")
                assert completion.cached

        return report(name, *await compare(without, hit), limit, CALLS)


@contextlib.contextmanager
def redis_server() -> Iterator[str | None]:
    """The URL of a Redis of its own, None where none is installed."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with subprocess.Popen([program, "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL) as process:
        try:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.05)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


async def main() -> bool:
    with mock_server() as url, tempfile.TemporaryDirectory() as folder, redis_server() as redis:
        kept = [
            await hits("a hit of the cache (to a bare call)", url, folder),
            await hits("a hit, and its row in the ledger", url, folder, booked=True),
        ]
        if redis is not None:
            await hits("a hit on Redis", url, folder, None, backend="redis", redis_url=redis)
        return all(kept)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
