"""Threads for a store, so that no event loop waits for a disk or a server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lmclient.cache.store import Store

T = TypeVar("T")


class Workers:
    """The threads of one store. They start with the first piece of work, and again after `aclose`.

    After a fork the child starts threads of its own.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._executor: ThreadPoolExecutor | None = None
        self._pid = 0

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` gives, which is called in one of the threads."""
        executor = self._executor
        if executor is None or self._pid != os.getpid():
            executor = self._executor = ThreadPoolExecutor(self._store.workers, "lmclient-cache")
            self._pid = os.getpid()
        return await asyncio.get_running_loop().run_in_executor(executor, work)

    async def aclose(self) -> None:
        """Closes the store in its thread, and ends the threads."""
        executor, self._executor = self._executor, None
        if executor is not None and self._pid == os.getpid():
            await asyncio.get_running_loop().run_in_executor(executor, self._store.close)
            executor.shutdown()
