"""An event loop in a thread of its own, on which synchronous code runs coroutines.

It hands a coroutine over in one step. anyio's blocking portal does the same in two, waiting for the
task to start and then for its end, which costs several times the CPU per call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from lmclient.errors import LMClientError

P = ParamSpec("P")
T = TypeVar("T")
_Running = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class BackgroundLoop:
    """Starts with the first call; a forked child starts one of its own. May be used by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._running: _Running | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether the loop runs in this process."""
        return self._running is not None and self._pid == os.getpid()

    def run(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of the coroutine function, run on the loop. An interrupt cancels it there.

        Raises `LMClientError` if the loop is closed before or during the call, or if this is its thread.
        """
        running = self._running
        if running is None or self._pid != os.getpid():
            running = self._start()
        if threading.current_thread() is self._thread:
            raise LMClientError(
                "A synchronous client cannot be called from its own event loop; use AsyncClient."
            )
        call = function(*args, **kwargs)
        try:
            future = asyncio.run_coroutine_threadsafe(call, running[0])
        except RuntimeError:  # closed by another thread just now
            call.close()
            raise LMClientError("The client is closed; make a new one.") from None
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise LMClientError("The client was closed during the call.") from None
        except BaseException:
            future.cancel()
            raise

    def close(self, release: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Awaits `release` on the loop, cancels what still runs there, and ends its thread."""
        if self._pid != os.getpid():  # the loop is the parent's
            self._closed = True
            return
        with self._lock:  # a loop that is just starting is closed, too
            self._closed = True
            running, thread = self._running, self._thread
            self._running = None
        if running is None or thread is None:
            return
        if thread is threading.current_thread():  # collected as garbage there: ends with the process
            return
        loop, stop = running
        if release is not None:
            asyncio.run_coroutine_threadsafe(release(), loop).result()
        loop.call_soon_threadsafe(stop.set)
        thread.join()

    def _start(self) -> _Running:
        if self._pid != os.getpid():
            self._pid, self._running = os.getpid(), None
            self._lock = threading.Lock()  # another thread of the parent may have held it
        with self._lock:
            if self._closed:
                raise LMClientError("The client is closed; make a new one.")
            if self._running is None:
                started: concurrent.futures.Future[_Running] = concurrent.futures.Future()
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(_serve(started)), name="lmclient", daemon=True
                )
                self._thread.start()
                self._running = started.result()
            return self._running


async def _serve(started: concurrent.futures.Future[_Running]) -> None:
    stop = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
