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
from typing import Any, Generic, NamedTuple, NoReturn, ParamSpec, TypeVar

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
        return _result(function(*args, **kwargs), running)

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
        try:
            if release is not None:
                _result(release(), running)
        finally:
            running.waker.call(running.stop.set)
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
                    target=self._serve, args=(started,), name="lmclient", daemon=True
                )
                self._thread.start()
                self._running = started.result()
            return self._running

    def _serve(self, started: concurrent.futures.Future[_Running]) -> None:
        """The thread's work. However the loop ends, nobody waits for it afterwards."""
        try:
            with asyncio.Runner() as runner:
                runner.run(_until_stopped(started))
        except (KeyboardInterrupt, SystemExit):
            pass  # a call raised it, and its caller has it
        except Exception as error:  # no loop can be made, as when too many files are open
            started.set_exception(error)
        finally:
            if started.exception() is None:
                self._end(started.result())

    def _end(self, running: _Running) -> None:
        self._running = None
        for call in [*running.calls]:
            call.abandon()


class _Running(NamedTuple):
    loop: asyncio.AbstractEventLoop
    waker: Waker
    stop: asyncio.Event
    calls: set[_Call[Any]]


async def _until_stopped(started: concurrent.futures.Future[_Running]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    started.set_result(_Running(loop, waker_of(loop), stop, set()))
    try:
        await stop.wait()
    finally:
        stop.set()  # also for a loop that ends by itself: it begins nothing more


def _result(coroutine: Coroutine[Any, Any, T], running: _Running) -> T:
    """What the coroutine gives on the loop, for a thread that waits for it."""
    call = _Call(coroutine, running)
    running.calls.add(call)
    try:
        if running.loop.is_closed():  # by another thread, which may not see this call
            call.refuse()
        running.waker.call(call.start)
        return call.result()
    except BaseException:
        running.waker.call(call.cancel)
        raise
    finally:
        running.calls.discard(call)


class _Call(Generic[T]):
    """A coroutine on its way to the loop, for a thread that waits for its result."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], running: _Running) -> None:
        self._coroutine = coroutine
        self._running = running
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[T] | None = None
        self._is_told = False
        self._told = threading.Lock()
        self._told.acquire()

    def start(self) -> None:
        """Starts it, on the loop, unless that is about to end."""
        if self._running.stop.is_set():
            self._tell(None)
        else:
            self._task = self._running.loop.create_task(self._coroutine, context=self._context)
            self._task.add_done_callback(self._tell)

    def cancel(self) -> None:
        """Cancels it, on the loop."""
        if self._task is not None:
            self._task.cancel()

    def refuse(self) -> NoReturn:
        """Raises what a call after the end gets."""
        self._coroutine.close()
        raise LMClientError("The client is closed; make a new one.")

    def abandon(self) -> None:
        """Ends the wait for it once the loop is closed; on the thread of the loop."""
        if not self._is_told:
            self._tell(self._task)

    def result(self) -> T:
        """Waits for its result. Raises what it raised, or `LMClientError` if the loop was closed."""
        self._told.acquire()
        if self._task is None:
            self.refuse()
        if not self._task.done() or self._task.cancelled():
            raise LMClientError("The client was closed during the call.")
        return self._task.result()

    def _tell(self, task: asyncio.Task[T] | None) -> None:
        self._is_told = True
        if task is not None and task.done() and not task.cancelled():
            task.exception()  # the caller may have been interrupted, and nobody else asks for it
        self._told.release()
