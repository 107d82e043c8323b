"""A hit of the cache, against the same call made with `interceptors=[]`.

    python tests/benchmarks/bench_cache.py

Exits with 1 if the limit is not kept.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from measuring import compare, mock_server, report

import lmclient

CALLS = 64
LIMIT = 0.5


async def hits(url: str, folder: Path, *, booked: bool) -> bool:
    profile = lmclient.ModelProfile(provider="openai-chat", model="mock", url=url, api_key="sk-benchmark")
    settings = lmclient.Settings(data_dir=folder, cache={"enabled": True}, spend={"enabled": booked})
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

        name = "a hit, and its row in the ledger" if booked else "a hit of the cache (to a bare call)"
        return report(name, *await compare(without, hit), LIMIT, CALLS)


async def main() -> bool:
    with mock_server() as url, tempfile.TemporaryDirectory() as folder:
        kept = [await hits(url, Path(folder, str(booked)), booked=booked) for booked in (False, True)]
        return all(kept)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
