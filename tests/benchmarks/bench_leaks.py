"""Whether memory or open sockets grow with streams that are started and left.

python tests/benchmarks/bench_leaks.py
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys

from measuring import mock_server

import lmclient

STREAMS = 10_000
AT_ONCE = 50
ALLOWED_KIB = 4096
"""Growth of the resident memory over the last nine tenths that is taken for noise."""


def resident_kib() -> int:
    """Resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


async def leave(client: lmclient.AsyncClient, profile: lmclient.ModelProfile) -> None:
    async with client.stream(profile, "Hello") as stream:
        async for _ in stream:
            break


async def main() -> bool:
    with mock_server() as url:
        profile = lmclient.ModelProfile(
            provider="openai-chat", model="mock", url=url, extra_query={"chunks": "50", "paced": "1"}
        )
        async with lmclient.AsyncClient(interceptors=[]) as client:
            measured = []
            for number in range(STREAMS // AT_ONCE):
                async with asyncio.TaskGroup() as group:
                    for _ in range(AT_ONCE):
                        group.create_task(leave(client, profile))
                if number % (STREAMS // AT_ONCE // 10) == STREAMS // AT_ONCE // 10 - 1:
                    gc.collect()
                    measured.append((resident_kib(), len(os.listdir("/proc/self/fd"))))
    for number, (kib, files) in enumerate(measured, 1):
        print(f"after {number * STREAMS // 10:6} streams: {kib} KiB resident, {files} open files")
    growth, files = measured[-1][0] - measured[0][0], measured[-1][1] - measured[0][1]
    print(f"growth {growth} KiB (limit {ALLOWED_KIB}), {files} files (limit {AT_ONCE})")
    return growth <= ALLOWED_KIB and files <= AT_ONCE


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
