"""A process that makes calls of 0.1 each under a shared budget of 1; prints how each one went."""

from __future__ import annotations

import asyncio
import sys
import time
from decimal import Decimal

from lmclient import BudgetExceededError, BudgetInterceptor, Ledger
from lmclient.settings import Budget

sys.path.insert(0, __file__.rpartition("/")[0])

from calls import answering, profile, request  # type: ignore[import-not-found]  # beside this file


async def main(url: str, calls: int, hang: bool) -> None:
    interceptor = BudgetInterceptor([Budget(name="b", amount=Decimal(1), period="total")], Ledger(url))
    asked = profile(cost={"input": "0", "output": "1000"})

    async def one() -> None:
        try:
            deadline = time.monotonic() + 60
            stream = await interceptor(
                request(asked, max_tokens=100, deadline=deadline), answering(cost=Decimal("0.1"))[0]
            )
            if hang:
                print("reserved", flush=True)
                await asyncio.Event().wait()
            await stream.wait()
            print("served", flush=True)
        except BudgetExceededError:
            print("refused", flush=True)

    await asyncio.gather(*(one() for _ in range(calls)))
    await interceptor.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), "--hang" in sys.argv))
