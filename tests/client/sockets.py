"""How many sockets this process has open. Linux only."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


def open_sockets() -> int:
    """The number of open sockets."""
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # of the listing itself
            count += os.readlink(link).startswith("socket:")
    return count


def settled(sockets: int) -> int:
    """The number of open sockets, once it is down to `sockets` or two seconds have passed."""
    until = time.monotonic() + 2
    while open_sockets() > sockets and time.monotonic() < until:
        time.sleep(0.005)
    return open_sockets()
