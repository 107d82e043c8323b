"""How the benchmarks measure: CPU time of this process, as a ratio to plain code in the same run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

ROUNDS = 25


@contextmanager
def mock_server() -> Iterator[str]:
    """The URL (ending in /v1) of a mock provider in a process of its own."""
    command = [sys.executable, "-m", "lmclient.testing.mock", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


async def cpu_of(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds of CPU that the awaited work takes in this process, all threads together."""
    start = time.process_time()
    await work()
    return time.process_time() - start


async def compare(
    plain: Callable[[], Awaitable[object]], ours: Callable[[], Awaitable[object]], rounds: int = ROUNDS
) -> tuple[float, float, float]:
    """Median CPU seconds of `plain` and of `ours`, and the median of their ratios, round by round."""
    await plain()
    await ours()
    pairs = [(await cpu_of(plain), await cpu_of(ours)) for _ in range(rounds)]
    return (
        statistics.median(first for first, _ in pairs),
        statistics.median(second for _, second in pairs),
        statistics.median(second / first for first, second in pairs),
    )


def report(name: str, plain: float, ours: float, ratio: float, limit: float | None, unit: int = 1) -> bool:
    """Prints a line in microseconds for one of `unit` pieces of work; whether the limit, if any, was kept."""
    kept = limit is None or ratio <= limit
    verdict = "" if limit is None else f"   limit {limit:.2f}   {'ok' if kept else 'TOO SLOW'}"
    print(
        f"{name:44} plain {plain / unit * 1e6:8.1f} µs   lmclient {ours / unit * 1e6:8.1f} µs   "
        f"ratio {ratio:5.2f}{verdict}",
        flush=True,
    )
    return kept
