"""The stores of the cache: a directory and a real Redis; what breaks them, and that no call minds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import diskcache
import pytest

from lmclient import CacheInterceptor, Completion, ConfigurationError
from lmclient.cache.disk_store import DiskStore, JsonDisk
from lmclient.cache.store import CacheError, open_store
from lmclient.interceptors.base import chain
from lmclient.settings import CacheSettings

from .model_in_test import ANSWER, Model, request

OLDER = b'{"schema":0,"answer":"from another time"}'
NO_ANSWER = b'{"schema":1,"until":1e12,"completion":{}}'


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder), "--bind", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            for line in server.stdout:
                if "Ready to accept connections" in line:
                    break
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()


@pytest.fixture(params=["disk", "redis"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> CacheSettings:
    """Settings of an empty cache in each of the stores."""
    if request.param == "disk":
        return CacheSettings(enabled=True, dir=tmp_path / "cache")
    made = CacheSettings(enabled=True, backend="redis", redis_url=request.getfixturevalue("redis_url"))
    store = open_store(made)
    store.clear()
    store.close()
    return made


@pytest.fixture
def on_disk(tmp_path: Path) -> CacheSettings:
    return CacheSettings(enabled=True, dir=tmp_path / "cache")


@contextlib.asynccontextmanager
async def opened(settings: CacheSettings) -> AsyncIterator[Callable[..., Any]]:
    """A call through a cache with these settings."""
    cache = CacheInterceptor(settings, lambda asked: repr(asked.conversation.turns))

    async def complete(model: Model | None = None, text: str = "Hi") -> Completion:
        return await (await chain([cache], model or Model())(request(text))).wait()

    yield complete
    await cache.aclose()


def damage(settings: CacheSettings, value: bytes) -> None:
    """Puts `value` in place of every entry."""
    if settings.backend == "redis":
        import redis

        with redis.Redis.from_url(str(settings.redis_url)) as server:
            for name in server.keys("*"):
                server.set(name, value)
        return
    assert settings.dir is not None
    with contextlib.closing(sqlite3.connect(settings.dir / "cache.db")) as database, database:
        database.execute("UPDATE Cache SET value = ?", (value,))


async def test_another_client_finds_the_answer(settings):
    for cached in (False, True):
        async with opened(settings) as complete:
            answer = await complete()
            assert (answer.text, answer.cached) == (ANSWER.text, cached)


@pytest.mark.parametrize(
    "value", [b"garbage \xff", b"{}", OLDER, NO_ANSWER, pickle.dumps("x"), b"[" * 100_000]
)
async def test_an_entry_that_is_unreadable_is_replaced_with_one_warning(settings, value, caplog):
    async with opened(settings) as complete:
        await complete()
        damage(settings, value)
        seen = [(await complete()).cached for _ in range(3)]
    assert seen == [False, True, True]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_contents_are_counted_and_cleared(settings):
    async with opened(settings) as complete:
        for number in range(3):
            await complete(text=f"{number}")
        store = open_store(settings)
        contents = store.contents()
        assert (contents.entries, contents.bytes > 900) == (3, True)
        assert store.clear() == 3
        store.close()
        assert not (await complete(text="1")).cached


async def test_an_entry_ends_with_its_time(settings):
    short = settings.model_copy(update={"ttl": 0.05})
    async with opened(short) as complete:
        await complete()
        await asyncio.sleep(0.1)
        assert not (await complete()).cached


async def test_no_redis_no_failure(caplog):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"redis://:sk-password@127.0.0.1:{nobody.getsockname()[1]}/0"
        async with opened(CacheSettings(enabled=True, backend="redis", redis_url=url)) as complete:
            assert [(await complete()).cached for _ in range(3)] == [False] * 3
    assert len(caplog.records) == 1
    assert "sk-password" not in caplog.text


def test_a_redis_that_does_not_answer_is_a_cache_error():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
        with pytest.raises(CacheError, match="cannot be used"):
            open_store(CacheSettings(backend="redis", redis_url=url)).contents()


async def test_another_type_under_a_key_of_redis_is_an_unreadable_entry(redis_url, caplog):
    import redis

    with redis.Redis.from_url(redis_url) as server:
        server.flushdb()
        async with opened(CacheSettings(backend="redis", redis_url=redis_url)) as complete:
            await complete()
            (name,) = server.keys("*")
            server.delete(name)
            server.lpush(name, "foreign")
            assert [(await complete(text="other")).cached for _ in range(2)] == [False, True]
            assert [(await complete()).cached for _ in range(2)] == [False, True]
    assert len(caplog.records) == 1


async def test_a_redis_url_that_asks_for_text_reads_bytes(redis_url, caplog):
    url = f"{redis_url}?decode_responses=true"
    settings = CacheSettings(backend="redis", redis_url=url)
    async with opened(settings) as complete:
        await complete()
        damage(settings.model_copy(update={"redis_url": redis_url}), b"\xff\xfe")
        assert [(await complete()).cached for _ in range(2)] == [False, True]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("option", ["bogus=1", "db=first", "protocol=9"])
def test_a_wrong_option_of_the_redis_url_is_said_at_once(redis_url, option):
    url = redis_url.replace("redis://", "redis://:sk-password@")
    with pytest.raises(ConfigurationError, match=r"cache\.redis_url") as raised:
        open_store(CacheSettings(backend="redis", redis_url=f"{url}?{option}"))
    assert "sk-password" not in str(raised.value)


def test_redis_without_its_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "lmclient.cache.redis_store", raising=False)
    with pytest.raises(ConfigurationError, match=r"lmclient\[redis\]"):
        open_store(CacheSettings(backend="redis", redis_url="redis://127.0.0.1/0"))


async def test_only_the_user_can_read_the_directory(on_disk):
    async with opened(on_disk) as complete:
        await complete()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in on_disk.dir.iterdir()}
        assert stat.S_IMODE(on_disk.dir.stat().st_mode) == 0o700
    assert {mode & 0o077 for mode in modes.values()} == {0}


async def test_a_directory_with_other_things_in_it_keeps_its_mode(on_disk):
    on_disk.dir.mkdir(mode=0o755)
    (on_disk.dir / "other.txt").touch()
    async with opened(on_disk) as complete:
        await complete()
    assert stat.S_IMODE(on_disk.dir.stat().st_mode) == 0o755
    assert stat.S_IMODE((on_disk.dir / "cache.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"garbage", b"SQLite format 3\0" + b"\xff" * 9000], ids=["text", "torn"])
async def test_a_database_that_is_garbage_is_begun_anew(on_disk, content, caplog):
    on_disk.dir.mkdir()
    (on_disk.dir / "cache.db").write_bytes(content)
    async with opened(on_disk) as complete:
        assert [(await complete()).cached for _ in range(2)] == [False, True]
    assert len(caplog.records) == 1
    assert [path.name for path in on_disk.dir.glob("broken*")] == []


@pytest.mark.parametrize("table", ["Cache", "documents"])
async def test_somebody_elses_database_is_kept_beside_a_new_one(on_disk, table, caplog):
    on_disk.dir.mkdir()
    with contextlib.closing(sqlite3.connect(on_disk.dir / "cache.db")) as database, database:
        database.execute(f"CREATE TABLE {table} (id, precious)")
        database.execute(f"INSERT INTO {table} VALUES (1, 'the only copy')")
    before = (on_disk.dir / "cache.db").read_bytes()
    async with opened(on_disk) as complete:
        assert [(await complete()).cached for _ in range(2)] == [False, True]
    (kept,) = on_disk.dir.glob("*/cache.db")
    assert kept.read_bytes() == before
    (record,) = caplog.records
    assert str(kept.parent) in record.getMessage()


async def test_a_database_broken_while_it_is_open_is_begun_anew(on_disk, caplog):
    async with opened(on_disk) as complete:
        for number in range(30):
            await complete(text=f"{number}")
        with contextlib.closing(sqlite3.connect(on_disk.dir / "cache.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = (on_disk.dir / "cache.db").stat().st_size
        with (on_disk.dir / "cache.db").open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        os.utime(on_disk.dir / "cache.db")
        with contextlib.closing(sqlite3.connect(on_disk.dir / "cache.db")) as database:
            database.execute("PRAGMA user_version = 7")  # others then read it again
        await complete()
        assert (await complete()).cached
    assert caplog.records


async def test_a_file_in_place_of_the_directory_is_no_failure(on_disk, caplog):
    on_disk.dir.write_text("not a directory")
    async with opened(on_disk) as complete:
        assert [(await complete()).cached for _ in range(3)] == [False] * 3
    assert len(caplog.records) == 1
    assert on_disk.dir.read_text() == "not a directory"


class Trap:
    """Makes a pickle that creates a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


async def test_a_pickle_is_never_read(on_disk, tmp_path, caplog):
    async with opened(on_disk) as complete:
        await complete()
    with contextlib.closing(sqlite3.connect(on_disk.dir / "cache.db")) as database, database:
        trap = pickle.dumps(Trap(tmp_path / "sprung"))
        database.execute("UPDATE Cache SET value = ?, mode = 4", (trap,))
    async with opened(on_disk) as complete:
        assert not (await complete()).cached
    assert not (tmp_path / "sprung").exists()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("value", [{"a": 1}, "text", 1.5, None, bytearray(b"{}")])
def test_nothing_but_bytes_is_written(tmp_path, value):
    with contextlib.closing(diskcache.Cache(str(tmp_path), disk=JsonDisk)) as cache:
        with pytest.raises(TypeError):
            cache.set("key", value)
        with pytest.raises(TypeError):
            cache.set(("key",), b"{}")


def test_the_size_has_a_limit(tmp_path):
    limit = 2_000_000
    store = DiskStore(CacheSettings(dir=tmp_path, size_limit=limit))
    for number in range(60):
        store.put(f"{number}", b"x" * 100_000)
    assert store.get("59") is not None
    assert store.get("0") is None
    assert store.contents().bytes < limit * 1.2
    store.put("too large", b"x" * (limit + 1))
    assert store.get("too large") is None
    store.close()


def test_a_limit_that_leaves_no_room_is_warned_of(tmp_path, caplog):
    DiskStore(CacheSettings(dir=tmp_path, size_limit=30_000))
    DiskStore(CacheSettings(dir=tmp_path, size_limit=100_000))
    assert ["size_limit is 30000" in record.getMessage() for record in caplog.records] == [True]


WRITER = """
import sys
from pathlib import Path
from lmclient.cache.disk_store import DiskStore
from lmclient.settings import CacheSettings

store = DiskStore(CacheSettings(dir=Path(sys.argv[1])))
number = 0
while True:
    name = f"{sys.argv[2]}-{number % 7}"
    store.put(name, name.encode() * 20_000)
    number += 1
    if number == 3:
        print("writing", flush=True)
"""


@pytest.mark.slow
def test_processes_that_are_killed_leave_whole_entries(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    for round in range(4):
        writers = [subprocess.Popen([*command, f"w{n}"], stdout=subprocess.PIPE, text=True) for n in range(2)]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
        time.sleep(0.01 * round)  # so that they are killed at different moments
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    store = DiskStore(CacheSettings(dir=tmp_path))
    names = [f"w{process}-{number}" for process in range(2) for number in range(7)]
    values = {name: store.get(name) for name in names}
    assert store.contents().entries == len([value for value in values.values() if value is not None]) >= 6
    assert all(value in (None, name.encode() * 20_000) for name, value in values.items())
    assert {path.name for path in tmp_path.iterdir()} <= {"cache.db", "cache.db-wal", "cache.db-shm"}
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(settings):
    cache = CacheInterceptor(settings, lambda asked: "same")

    async def call() -> bool:
        return (await (await chain([cache], Model())(request())).wait()).cached

    assert not asyncio.run(call())
    child = os.fork()
    if child == 0:
        os._exit(0 if asyncio.run(call()) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asyncio.run(call())
    asyncio.run(cache.aclose())
