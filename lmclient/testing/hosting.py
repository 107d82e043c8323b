"""Runs a test server beside the code under test: in a thread, or as a program until Ctrl-C.

A server is given as an asynchronous context manager that listens while it is open, such as
`FaultProvider.open()`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import Any, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

Server = TypeVar("Server")


@contextlib.contextmanager
def running_in_thread(server: AbstractAsyncContextManager[Server]) -> Iterator[Server]:
    """Serve from a thread of its own until the context ends, for synchronous and asynchronous callers.

    Raises OSError if the port is taken.
    """
    with (
        start_blocking_portal(backend_options=_loop_options()) as portal,
        portal.wrap_async_context_manager(server) as opened,
    ):
        yield opened


def run_until_interrupted(
    server: AbstractAsyncContextManager[Server], announce: Callable[[Server], str]
) -> None:
    """Serve until Ctrl-C, which returns. What `announce` makes of the server is printed once it listens.

    Raises OSError if the port is taken.
    """

    async def serve() -> None:
        async with server as opened:
            print(announce(opened), flush=True)
            await anyio.sleep_forever()

    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(serve, backend_options=_loop_options())


def _loop_options() -> dict[str, Any]:
    """uvloop where it is installed: the mock provider should cost as little as it can."""
    return {"use_uvloop": find_spec("uvloop") is not None}
