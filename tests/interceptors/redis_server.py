"""A real Redis for tests, on a free port, where the machine has one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running(directory: Path) -> Iterator[str]:
    """The URL of a Redis that keeps nothing, while the context is open. Skips the test if there is none."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine (apt-get install redis-server)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
    server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(port: int) -> None:
    ends = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > ends:
                raise
        time.sleep(0.01)
