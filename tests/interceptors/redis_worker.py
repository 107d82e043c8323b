"""A process that takes a shared limit as fast as it gets it; prints the time of each admission."""

from __future__ import annotations

import asyncio
import sys
import time

from lmclient.limits.base import Demand
from lmclient.limits.limiter import Limiter
from lmclient.limits.redis import RedisStore


async def main(url: str, calls: int, span: float, limit: int) -> None:
    limiter = Limiter(lambda freed: RedisStore(url, freed, span=span), time.monotonic)
    demand = Demand(
        scope="shared", tokens=10, requests_per_minute=limit, tokens_per_minute=10**6, concurrency=4
    )

    async def one() -> None:
        lease = await limiter.admit(demand, None)
        print(time.time(), flush=True)
        await asyncio.sleep(0.002)
        await lease.settle(1, 5)

    await asyncio.gather(*(one() for _ in range(calls)))
    await limiter.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
