"""Work that ends when the caller goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.types import Receive


async def while_connected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Does the work, and cancels it when the caller goes away.

    The work must send the end of its answer last: from then on the connection counts as left.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    def leave(_: asyncio.Task[None]) -> None:
        nonlocal gone
        gone = True
        task.cancel()

    watch = asyncio.create_task(_until_disconnected(receive))
    watch.add_done_callback(leave)
    try:
        await work
    except asyncio.CancelledError:
        if not gone or task.uncancel() > 0:
            raise
    finally:
        watch.remove_done_callback(leave)
        watch.cancel()


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
