"""The thread that writes: what arrives while it commits is in its next commit."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from lmclient.core.waking import Callback, Waker, waker_of
from lmclient.errors import LMClientError
from lmclient.spend.database import Database, Row

logger = logging.getLogger("lmclient.spend")
Work = Callable[[Database], Any]

MAX_GROUP = 1000
"""Entries in one commit."""
TRIES = 3
RETRY_EVERY = 5.0
"""Seconds after which rows that could not be written are tried again, if nothing else is written."""
LOOK_EVERY = 1.0
"""Seconds after which a writer that is in use looks whether its file was removed or replaced."""
MAX_KEPT = 100_000
"""Calls whose rows are kept in memory while the database cannot be written; about 1 kB each."""


class Entry:
    """Rows, or work that reads and writes, and the future that is told of the commit."""

    __slots__ = ("error", "future", "result", "rows", "waker", "work")

    def __init__(self, rows: Sequence[Row] = (), work: Work | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = loop.create_future()
        self.waker = waker_of(loop)
        self.rows = rows
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None

    def tell(self) -> None:
        """Resolves the future, on its loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Writer:
    """Commits entries in the order in which they came, on one thread with one connection.

    The thread starts with the first entry. It is of one process: after a fork, a child makes a
    writer of its own. Rows that cannot be written because the database is locked, full, read-only or
    away are kept and tried again, and an error is logged; the entry counts as done, since an answer
    that was paid for must reach its caller. Work that fails gets its exception.
    """

    def __init__(self, connect: Callable[[], Database], name: str, insert: str) -> None:
        self._connect = connect
        self._name = name
        self._insert = insert
        self._queue: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._kept: list[Entry] = []

    def put(self, entry: Entry) -> None:
        """Has the entry committed; its future is resolved on its loop afterwards."""
        self._queue.put(entry)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._start()

    def close(self) -> None:
        """Waits until all is written, and ends the thread; a later entry starts it anew."""
        with self._lock:
            if self._thread is None:
                return
            self._queue.put(None)
            self._thread.join()
            self._thread = None
            if not self._queue.empty():  # whoever put that may have seen the thread that has ended
                self._start()

    def end(self) -> None:
        """Has the thread end once all is written, without waiting for it."""
        if self._thread is not None:
            self._queue.put(None)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="lmclient-ledger", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Only this frame holds the connection, so that a forked child, where the thread does not
        # exist, can neither use nor close it.
        database: Database | None = None
        going_on, looked = True, time.monotonic()
        while going_on:
            group, going_on = self._next_group()
            if database is not None and (now := time.monotonic()) - looked >= LOOK_EVERY:
                looked = now
                if not database.is_in_place():
                    self._leave(database)
                    database = None
            if database is not None and not self._kept and self._is_written_alone(database, group):
                _tell(group)
                group.clear()
                continue
            kept, self._kept = self._kept, []
            if database is None:
                database = self._opened(kept + group)
            if database is not None:
                self._commit(database, kept + group)
            if database is not None and self._kept:
                # Opened anew for the next try: by then it may be on another server, or without its tables.
                database.close()
                database = None
            _tell(group)
            group.clear()  # or the last entry would keep its event loop while this waits
        if database is not None:
            database.close()

    def _leave(self, database: Database) -> None:
        """Closes a file that is at its place no more, but may be at another one."""
        logger.error(
            "The ledger %s was removed or replaced; going on with what is there now. What was booked in the "
            "last second is in the former file alone.",
            self._name,
        )
        database.close()

    def _is_written_alone(self, database: Database, group: list[Entry]) -> bool:
        """Writes a group that is one row, the usual case, by the shortest way; whether that was possible."""
        if len(group) != 1 or group[0].work is not None:
            return False
        try:
            database.insert(self._insert, group[0].rows)
        except Exception:  # what stands against it shows again when it is tried the usual way
            return False
        return True

    def _next_group(self) -> tuple[list[Entry], bool]:
        """What is to be committed next, waiting for the first; False if it is the last."""
        group: list[Entry] = []
        try:
            entry = self._queue.get(timeout=RETRY_EVERY if self._kept else None)
        except queue.Empty:
            return group, True
        while entry is not None:
            group.append(entry)
            if len(group) == MAX_GROUP or self._queue.empty():  # only this thread takes from it
                return group, True
            entry = self._queue.get()
        return group, False

    def _opened(self, group: list[Entry]) -> Database | None:
        try:
            return self._connect()
        except Exception as error:  # a thread's boundary: whoever waits is told
            self._keep(group, error)
            return None

    def _commit(self, database: Database, group: list[Entry]) -> None:
        if not group:
            return
        problem = self._try(database, group, TRIES)
        if problem is None:
            return
        failed: list[Entry] = []
        for number, entry in enumerate(group):  # one may be at fault: the others are not to suffer
            error = problem if len(group) == 1 else self._try(database, [entry], 1)
            if error is None:
                continue
            if not database.may_pass(error):
                entry.error = error if entry.work is not None else None
                logger.error("A row cannot be written to the ledger %s: %s", self._name, error)
                continue
            problem = error
            failed.append(entry)
            if len(failed) == 2:  # so it is not one of them, but the database
                failed += group[number + 1 :]
                break
        if failed:
            self._keep(failed, problem)

    def _try(self, database: Database, group: list[Entry], most: int) -> Exception | None:
        """Commits the group, if need be at a later one of `most` tries; what stood against it."""
        tries = 0
        while True:
            try:
                self._write(database, group)
                return None
            except Exception as error:  # a thread's boundary: whoever waits is told
                tries += 1
                if tries == most or not database.may_pass(error):
                    return error
            time.sleep(0.05 * 2**tries)

    def _write(self, database: Database, group: list[Entry]) -> None:
        rows: list[Row] = []
        works: list[tuple[Entry, Work]] = []
        for entry in group:
            rows += entry.rows
            if entry.work is not None:
                works.append((entry, entry.work))
        if not works:
            database.insert(self._insert, rows)
            return
        with database.transaction():
            if rows:  # Postgres would be asked for none of them, too
                database.execute_many(self._insert, rows)
            for entry, work in works:
                _perform(database, entry, work)

    def _keep(self, group: list[Entry], error: Exception) -> None:
        """Fails the work that was to be done, and keeps the rows, for a later group."""
        for entry in group:
            if entry.work is not None:
                entry.error = error if isinstance(error, LMClientError) else unusable(self._name, error)
        rows = [entry for entry in group if entry.rows]
        room = MAX_KEPT - len(self._kept)
        self._kept += rows[:room]
        lost = max(0, len(rows) - room)
        if rows:
            logger.error(
                "%s Calls that are kept in memory and tried again: %d%s.",
                error if isinstance(error, LMClientError) else unusable(self._name, error),
                len(self._kept),
                f"; lost: {lost}" if lost else "",
            )


def unusable(name: str, error: Exception) -> LMClientError:
    """The error of a database, for callers of lmclient."""
    return LMClientError(f"The ledger {name} cannot be used now: {str(error).strip()}.")


def _perform(database: Database, entry: Entry, work: Work) -> None:
    """Does the work of an entry. What it raises undoes its part only, and is its caller's to see."""
    entry.error = None
    try:
        with database.savepoint():
            entry.result = work(database)
    except Exception as error:  # handed to the caller, unless the transaction itself has failed
        if database.may_pass(error):
            raise
        entry.error = error


def _tell(group: list[Entry]) -> None:
    """Has all futures resolved, each on its loop."""
    callbacks: dict[Waker, list[Callback]] = {}
    for entry in group:
        callbacks.setdefault(entry.waker, []).append(entry.tell)
    for waker, those in callbacks.items():
        waker.call(*those)
