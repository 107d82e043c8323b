"""Ledgers in a SQLite file and in a real Postgres server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from lmclient import Ledger, Settings
from lmclient.spend.client import AsyncSpend

UNPRIVILEGED = "nobody"
"""Postgres refuses to run as root; then its programs run as this user."""


def postgres_program(name: str) -> str | None:
    found = shutil.which(name)
    if found is None:
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        found = next((str(folder / name) for folder in folders if (folder / name).exists()), None)
    return found


def as_a_user(command: list[str]) -> list[str]:
    if os.geteuid() != 0:
        return command
    return ["runuser", "-u", UNPRIVILEGED, "--", *command]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """The folder with the socket of a Postgres server."""
    initdb, server = postgres_program("initdb"), postgres_program("postgres")
    pg_ctl = postgres_program("pg_ctl")
    if initdb is None or server is None or pg_ctl is None:
        pytest.skip("needs the programs of a Postgres server: initdb, pg_ctl and postgres")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("Postgres does not run as root, and there is no runuser to change the user")
    # A socket's path has 107 bytes at most, fewer than pytest's own folders may take.
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, UNPRIVILEGED)
        data = f"{folder}/data"
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        init = [initdb, "-D", data, "-A", "trust", "-U", "lmclient", "-E", "UTF8", "--no-sync"]
        log = f"{folder}/log"
        subprocess.run(as_a_user(init), check=True, capture_output=True, cwd=folder)
        start = [pg_ctl, "-D", data, "-l", log, "-w", "-o", options, "start"]
        subprocess.run(as_a_user(start), check=True, stdout=subprocess.DEVNULL, cwd=folder)
        try:
            yield Path(folder)
        finally:
            stop = [pg_ctl, "-D", data, "-m", "immediate", "-w", "stop"]
            subprocess.run(as_a_user(stop), check=True, stdout=subprocess.DEVNULL, cwd=folder)


@pytest.fixture
def postgres_url(postgres_server: Path) -> str:
    """An empty schema of its own."""
    import psycopg

    database = f"postgresql://lmclient@{quote(str(postgres_server), safe='')}/postgres"
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{database}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the ledger is, once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'ledger.sqlite3'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[Ledger]:
    ledger = Ledger(url)
    yield ledger
    await ledger.aclose()


@pytest.fixture
def spend(ledger: Ledger) -> AsyncSpend:
    return AsyncSpend(ledger)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")
