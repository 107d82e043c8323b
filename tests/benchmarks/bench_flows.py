"""The runtime's own cost of a flow: CPU per branch, memory, and how long it holds the event loop.

    python tests/benchmarks/bench_flows.py

The calls go to a client that answers at once. Exits with 1 if a limit is not kept.
"""

from __future__ import annotations

import asyncio
import sys
import time
import tracemalloc
from typing import Any, cast

from measuring import cpu_of

from lmclient.client import AsyncClient
from lmclient.core.completion import Completion, FinishReason
from lmclient.core.usage import Usage
from lmclient.flows import Agent, AgentContext, AgentType, FlowExecutor, TextHandler, merge_contexts

ROUNDS = 15
BRANCHES = 1000
FLOWS = 100
MICROSECONDS_PER_BRANCH = 150.0
MILLISECONDS_PER_STEP = 20.0

ANSWER = Completion(
    text="An answer.",
    finish_reason=FinishReason.STOP,
    usage=Usage(input_tokens=20, output_tokens=3),
    requests=1,
    profile="instant",
)


class InstantClient:
    """Answers at once, so that only the flow itself costs anything."""

    async def complete(self, target: object, conversation: object, **options: object) -> Completion:
        await asyncio.sleep(0)
        return ANSWER


def executor() -> FlowExecutor:
    return FlowExecutor(cast(AsyncClient, InstantClient()))


def fan_out(count: int) -> AgentContext:
    """One agent with `count` branches that are merged, and one that reads all of them."""
    context = AgentContext(
        [
            Agent(
                "Analyzer",
                AgentType.COMPLETION,
                system_prompt="Analyze this item.",
                template="The source:\n{{code}}\nThe item: [[item]] of [[number|hidden]]",
                handler=TextHandler("analysis"),
                merge=lambda contexts: merge_contexts(["item", "analysis"], contexts),
                next="Writer",
            ),
            Agent("Writer", AgentType.COMPLETION, template="{{analysis}}", handler=TextHandler("text")),
        ]
    )
    context.set("code", "print('hello')\n" * 100)
    context.set_all("item", [f"item {number}" for number in range(count)])
    context.set_all("number", list(range(count)))
    return context


async def cost_per_branch(count: int) -> float:
    """Microseconds of CPU that a branch takes: the best of some rounds, free of other programs."""

    async def walk() -> None:
        (result,) = await executor().walk("Analyzer", fan_out(count))
        assert len(result.get_all("analysis")) == count, result.error

    await walk()
    return min([await cpu_of(walk) for _ in range(ROUNDS)]) / count * 1e6


async def memory_per_branch(count: int) -> float:
    """KiB that a branch takes at the walk's peak."""
    context = fan_out(count)
    tracemalloc.start()
    await executor().walk("Analyzer", context)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / count / 1024


async def longest_hold() -> tuple[float, float]:
    """Milliseconds: the longest callback while flows run at once, and the longest wait of another task."""
    longest = 0.0
    run: Any = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        start = time.thread_time()
        run(handle)
        longest = max(longest, time.thread_time() - start)

    async def heartbeat() -> None:
        nonlocal wait
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            wait = max(wait, time.perf_counter() - start - 0.001)

    wait = 0.0
    asyncio.Handle._run = timed  # type: ignore[method-assign]  # the loop calls it for every step
    beating = asyncio.create_task(heartbeat())
    try:
        await asyncio.gather(*(executor().walk("Analyzer", fan_out(20)) for _ in range(FLOWS)))
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        beating.cancel()
    return longest * 1e3, wait * 1e3


async def main() -> int:
    """Prints a line per measurement; the exit status."""
    cost = await cost_per_branch(BRANCHES)
    print(f"{BRANCHES} branches: {cost:.0f} µs of CPU each, limit {MICROSECONDS_PER_BRANCH:.0f} µs")
    few, many = await memory_per_branch(BRANCHES), await memory_per_branch(4 * BRANCHES)
    print(f"memory: {few:.1f} KiB per branch of {BRANCHES}, {many:.1f} KiB of {4 * BRANCHES}")
    hold, wait = await longest_hold()
    print(f"{FLOWS} flows of 20 branches at once: a step holds the loop for at most {hold:.1f} ms, ", end="")
    print(f"limit {MILLISECONDS_PER_STEP:.0f} ms; another task waited for at most {wait:.1f} ms")
    kept = cost <= MICROSECONDS_PER_BRANCH and hold <= MILLISECONDS_PER_STEP and many <= 1.2 * few
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
