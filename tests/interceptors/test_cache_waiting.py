"""A store of the cache that does not answer: calls go on without it, in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmclient import CacheInterceptor, Completion
from lmclient.cache import completions, disk_store, redis_store
from lmclient.interceptors.base import chain
from lmclient.settings import CacheSettings

from . import redis_server
from .model_in_test import Model, request

MANY = 12


@pytest.fixture
def hung_redis(tmp_path: Path) -> Iterator[str]:
    """The URL of a Redis that takes connections and answers nothing."""
    redis = pytest.importorskip("redis")
    with redis_server.running(tmp_path) as url:
        with redis.Redis.from_url(url) as server:
            pid = server.info("server")["process_id"]
        os.kill(pid, signal.SIGSTOP)
        yield url
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Another program writes to the database in the directory all the while."""
    with contextlib.closing(sqlite3.connect(directory / "cache.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield


def cache_with(settings: CacheSettings) -> CacheInterceptor:
    return CacheInterceptor(settings, lambda asked: repr(asked.conversation.turns))


async def complete(cache: CacheInterceptor, text: str = "Hi", seconds: float = 60) -> Completion:
    asked = request(text, deadline=time.monotonic() + seconds)
    return await (await chain([cache], Model())(asked)).wait()


async def test_a_redis_that_hangs_delays_calls_once_and_together(hung_redis, monkeypatch, caplog):
    monkeypatch.setattr(completions, "PATIENCE", 0.3)
    monkeypatch.setattr(redis_store, "ANSWER", 0.5)
    cache = cache_with(CacheSettings(backend="redis", redis_url=hung_redis))
    started = time.monotonic()
    answers = await asyncio.gather(*(complete(cache, f"{number}") for number in range(MANY)))
    assert [answer.cached for answer in answers] == [False] * MANY
    # Neither one after the other nor once for reading and once for keeping.
    assert time.monotonic() - started < 1
    await cache.aclose()
    assert time.monotonic() - started < 1.5  # what stood in line was not tried any more
    assert len(caplog.records) == 1


async def test_a_hung_store_takes_a_part_of_a_calls_time_at_most(hung_redis):
    cache = cache_with(CacheSettings(backend="redis", redis_url=hung_redis))
    started = time.monotonic()
    await complete(cache, seconds=0.8)
    assert time.monotonic() - started < 0.6
    await cache.aclose()


async def test_a_database_that_another_program_locks_delays_calls_a_little(tmp_path, monkeypatch):
    monkeypatch.setattr(completions, "PATIENCE", 0.2)
    monkeypatch.setattr(disk_store, "BUSY", 0.5)
    settings = CacheSettings(dir=tmp_path)
    earlier = cache_with(settings)
    await complete(earlier)
    await earlier.aclose()
    cache = cache_with(settings)
    started = time.monotonic()
    with locked(tmp_path):
        await asyncio.gather(*(complete(cache, f"{number}") for number in range(MANY)))
        assert time.monotonic() - started < 1
        await cache.aclose()  # it waits for the thread that opens the database
    assert time.monotonic() - started < 5
