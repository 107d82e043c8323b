"""Threads for a store, so that no event loop waits for a disk or a server."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

import msgspec

from lmclient.cache.store import Store
from lmclient.core.waking import Waker, waker_of

T = TypeVar("T")


class _Job(msgspec.Struct, frozen=True, eq=False):
    """Work for a thread, and who waits for it. Without work it is the thread's last one."""

    work: Callable[[], Any] | None = None
    waker: Waker | None = None
    done: asyncio.Future[Any] | None = None


_Queue = SimpleQueue[_Job]


class Workers:
    """The threads of one store. They start with the first piece of work, and again after `aclose`.

    After a fork the child starts threads of its own. A queue and a future cost half the CPU of the
    standard executor, which would take a third of what a hit of the cache may cost.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._queue: _Queue | None = None
        self._pid = 0

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """What `work` gives, which is called in one of the threads.

        Raises the builtin `TimeoutError` where that takes longer; the work is done all the same.
        """
        queue = self._queue
        if queue is None or self._pid != os.getpid():
            queue = self._start()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        queue.put(_Job(work, waker_of(loop), done))
        timer = loop.call_later(seconds, _settle, done, None, TimeoutError())
        try:
            return await done
        finally:
            timer.cancel()

    async def aclose(self) -> None:
        """Closes the store in its threads, and ends them."""
        queue, self._queue = self._queue, None
        if queue is not None and self._pid == os.getpid():
            loop = asyncio.get_running_loop()
            ends = [loop.create_future() for _ in range(self._store.workers)]
            for end in ends:
                queue.put(_Job(None, waker_of(loop), end))
            await asyncio.gather(*ends)

    def _start(self) -> _Queue:
        with self._lock:
            if self._queue is None or self._pid != os.getpid():
                self._queue, self._pid = SimpleQueue(), os.getpid()
                weakref.finalize(self, _end, self._queue, self._store.workers)
                for _ in range(self._store.workers):
                    thread = threading.Thread(
                        target=_serve, args=(self._queue, self._store), name="lmclient-cache", daemon=True
                    )
                    thread.start()
            return self._queue


def _serve(queue: _Queue, store: Store) -> None:
    while (job := queue.get()).work is not None:
        _do(job, job.work)
        del job  # the thread may be idle for long; it must not keep an answer or a loop alive
    _do(job, store.close)


def _do(job: _Job, work: Callable[[], object]) -> None:
    result: object = None
    problem: BaseException | None = None
    try:
        result = work()
    except BaseException as error:  # raised where the result is waited for
        problem = error
    if job.waker is not None and job.done is not None:
        job.waker.call(partial(_settle, job.done, result, problem))


def _settle(done: asyncio.Future[Any], result: object, problem: BaseException | None) -> None:
    if done.done():
        return  # whoever waited was cancelled, or waits no longer
    if problem is None:
        done.set_result(result)
    else:
        done.set_exception(problem)


def _end(queue: _Queue, workers: int) -> None:
    for _ in range(workers):
        queue.put(_Job())
