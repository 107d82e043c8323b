"""What the fault provider counts for each scenario and key."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from lmclient.testing.fault.call import Call, Json


@dataclass
class Counters:
    """What one scenario and key has seen. The module docstring explains the fields."""

    requests: int = 0
    max_in_flight: int = 0
    times: list[float] = field(default_factory=list)
    authorization: list[bool] = field(default_factory=list)
    aborted: int = 0
    in_flight: int = 0
    peers: set[object] = field(default_factory=set)

    def as_json(self) -> Json:
        return {
            "requests": self.requests,
            "max_in_flight": self.max_in_flight,
            "times": list(self.times),
            "authorization": list(self.authorization),
            "aborted": self.aborted,
            "connections": len(self.peers),
        }

    @contextlib.contextmanager
    def counting(self, call: Call, peer: object) -> Iterator[None]:
        """Count a call that is answered inside the with block."""
        self.requests += 1
        self.times.append(time.monotonic())
        self.authorization.append(call.credentials is not None)
        self.peers.add(peer)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            yield
        except (asyncio.CancelledError, ConnectionError):
            self.aborted += 1
            raise
        finally:
            self.in_flight -= 1
