"""What the synchronous client adds to the asynchronous one, per call.

python tests/benchmarks/bench_sync.py
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from measuring import mock_server

import lmclient

CALLS = 64
ROUNDS = 25
LIMIT = 150e-6
"""Seconds of CPU per call."""


def main() -> bool:
    with (
        mock_server() as url,
        asyncio.Runner() as runner,
        lmclient.Client(interceptors=[]) as client,
    ):
        profile = lmclient.ModelProfile(provider="openai-chat", model="mock", url=url, api_key="sk-benchmark")
        asynchronous = lmclient.AsyncClient(interceptors=[])

        async def calls() -> None:
            for _ in range(CALLS):
                await asynchronous.complete(profile, "Hello")

        def sync_cpu() -> float:
            start = time.process_time()
            for _ in range(CALLS):
                client.complete(profile, "Hello")
            return time.process_time() - start

        def async_cpu() -> float:
            start = time.process_time()
            runner.run(calls())
            return time.process_time() - start

        sync_cpu(), async_cpu()
        pairs = [(async_cpu(), sync_cpu()) for _ in range(ROUNDS)]
        runner.run(asynchronous.aclose())
    plain, ours = (statistics.median(values) / CALLS for values in zip(*pairs, strict=True))
    print(
        f"one call: async {plain * 1e6:.1f} µs   sync {ours * 1e6:.1f} µs   "
        f"added {(ours - plain) * 1e6:.1f} µs   limit {LIMIT * 1e6:.0f} µs"
    )
    return ours - plain <= LIMIT


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
