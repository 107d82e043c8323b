"""Many processes on one ledger, and processes that die."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from lmclient import Ledger
from lmclient.spend.client import AsyncSpend
from lmclient.testing import MockProvider

WORKER = str(Path(__file__).with_name("worker.py"))


@pytest.fixture(scope="module")
def provider() -> Iterator[MockProvider]:
    with MockProvider.running() as running:
        yield running


def start(*arguments: str, **options: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, WORKER, *arguments], **options)


@pytest.mark.slow
async def test_eight_processes_that_write_at_once_lose_nothing(url: str) -> None:
    workers = [start("rows", url, "200", stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    outcomes = []
    for worker in workers:  # each waits for a byte, so that all begin together
        assert worker.stdin is not None
        worker.stdin.write(b"x")
        worker.stdin.flush()
    for worker in workers:
        _, complaints = worker.communicate()
        outcomes.append((worker.returncode, complaints))
    assert outcomes == [(0, b"")] * 8
    (row,) = await AsyncSpend(Ledger(url)).report([])
    assert (row.calls, row.cost) == (1600, Decimal("160.0"))


@pytest.mark.parametrize("seed", range(4))
async def test_no_finished_call_is_missing_after_sigkill(
    tmp_path: Path, provider: MockProvider, seed: int
) -> None:
    folder = tmp_path / "data"
    worker = start("calls", provider.url(), str(folder), "100000", stdout=subprocess.PIPE)
    assert worker.stdout is not None
    printed = b""
    wanted = random.Random(seed).randint(1, 400)
    while printed.count(b"\n") < wanted:
        printed += os.read(worker.stdout.fileno(), 65536)
    os.kill(worker.pid, signal.SIGKILL)
    printed += worker.communicate()[0]
    finished = {
        line.split()[1].decode() for line in printed.splitlines(keepends=True) if line.endswith(b"\n")
    }
    booked = await AsyncSpend(Ledger(f"sqlite:///{folder / 'ledger.sqlite3'}")).records(limit=10**6)
    assert finished <= {record.tags["n"] for record in booked}
    assert len(finished) >= wanted
