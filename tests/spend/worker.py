"""Programs of the tests with several processes: `python worker.py calls|rows …`."""

from __future__ import annotations

import asyncio
import datetime
import os
import sys
from decimal import Decimal
from pathlib import Path

from lmclient import AsyncClient, Ledger, ModelProfile, Settings, SpendRecord


async def calls(url: str, data_dir: str, number: str) -> None:
    """Makes calls, several at once, and prints the id of each when the client has returned it."""
    profile = ModelProfile(
        provider="openai-chat", model="mock", url=url, api_key="sk-test", cost={"input": "1", "output": "1"}
    )

    async def one_after_the_other(client: AsyncClient, worker: int) -> None:
        for index in range(int(number)):
            name = f"{worker}-{index}"
            if index % 2:
                async with client.stream(profile, "hi", tags={"n": name}) as stream:
                    await stream.wait()
            else:
                await client.complete(profile, "hi", tags={"n": name})
            os.write(1, f"done {name}\n".encode())

    async with AsyncClient(Settings(data_dir=Path(data_dir))) as client:
        await asyncio.gather(*(one_after_the_other(client, worker) for worker in range(4)))


async def rows(url: str, number: str) -> None:
    """Books rows one after the other, each with a commit of its own."""
    ledger = Ledger(url)
    await ledger.open()
    sys.stdin.read(1)
    for index in range(int(number)):
        record = SpendRecord(
            call_id=f"{os.getpid()}-{index}",
            attempt=1,
            time=datetime.datetime.now(datetime.UTC),
            profile="mini",
            provider="openai-chat",
            model="mock",
            cost=Decimal("0.1"),
        )
        await ledger.book([record])
    await ledger.aclose()


if __name__ == "__main__":
    asyncio.run({"calls": calls, "rows": rows}[sys.argv[1]](*sys.argv[2:]))
