"""An event loop in a thread of its own, on which synchronous code runs coroutines.

It hands a coroutine over in one step. anyio's blocking portal does the same in two, waiting for the
task to start and then for its end, which costs several times the CPU per call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from lmclient.core.waking import Waker, waker_of
from lmclient.errors import LMClientError

P = ParamSpec("P")
T = TypeVar("T")


class BackgroundLoop:
    """Starts with the first call; a forked child starts one of its own. May be used by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._running: _Running | None = None
        self._thread: threading.Thread | None = None
        self._calls: set[_Call[Any]] = set()
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
        call = _Call(function(*args, **kwargs), running.loop)
        self._calls.add(call)
        try:
            if self._running is not running:  # closed by another thread, which may not see this call
                call.abandon()
            else:
                running.waker.call(call.start)
            return call.result()
        except BaseException:
            running.waker.call(call.cancel)
            raise
        finally:
            self._calls.discard(call)

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
        if release is not None:
            asyncio.run_coroutine_threadsafe(release(), running.loop).result()
        running.waker.call(running.stop.set)
        thread.join()
        for call in [*self._calls]:
            call.abandon()

    def _start(self) -> _Running:
        if self._pid != os.getpid():
            self._pid, self._running = os.getpid(), None
            self._calls = set()
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


class _Running(NamedTuple):
    loop: asyncio.AbstractEventLoop
    waker: Waker
    stop: asyncio.Event


async def _serve(started: concurrent.futures.Future[_Running]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    started.set_result(_Running(loop, waker_of(loop), stop))
    await stop.wait()


class _Call(Generic[T]):
    """A coroutine on its way to the loop, for a thread that waits for its result."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[T] | None = None
        self._is_told = False
        self._told = threading.Lock()
        self._told.acquire()

    def start(self) -> None:
        """Starts it, on the loop."""
        self._task = self._loop.create_task(self._coroutine, context=self._context)
        self._task.add_done_callback(self._tell)

    def cancel(self) -> None:
        """Cancels it, on the loop."""
        if self._task is not None:
            self._task.cancel()

    def abandon(self) -> None:
        """Ends the wait for it, once the loop is closed."""
        if not self._is_told:
            self._tell(self._task)

    def result(self) -> T:
        """Waits for its result. Raises what it raised, or `LMClientError` if the loop was closed."""
        self._told.acquire()
        if self._task is None:
            self._coroutine.close()
            raise LMClientError("The client is closed; make a new one.")
        if not self._task.done() or self._task.cancelled():
            raise LMClientError("The client was closed during the call.")
        return self._task.result()

    def _tell(self, task: asyncio.Task[T] | None) -> None:
        self._is_told = True
        if task is not None and task.done() and not task.cancelled():
            task.exception()  # the caller may have been interrupted, and nobody else asks for it
        self._told.release()
