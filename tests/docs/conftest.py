"""A machine for the pages: a home of its own, keys of every vendor, and a server that plays them all."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmclient.testing.hosting import running_in_thread

from . import redirecting
from .command_server import COMMAND, SOCKET
from .model_server import open_server
from .page_runner import PageRunner

ROOT = Path(__file__).parents[2]
ENDPOINT = "https://example.invalid"
LOCAL = """
provider = "openai-chat"
model = "docs"
url = "https://docs.invalid/v1"
[cost]
input = "0"
output = "0"
"""
"""Stands for the embedded model on pages that are about something else."""


@pytest.fixture(scope="session")
def model_server() -> Iterator[str]:
    with running_in_thread(open_server()) as url:
        yield url


@pytest.fixture(scope="session")
def command_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("commands") / "socket")
    program = [sys.executable, "-m", "tests.docs.command_server", path]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield path
        process.terminate()


@pytest.fixture
def machine(model_server: str, command_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; all that lmclient looks up elsewhere is below it, too."""
    home, work, commands = (tmp_path / name for name in ("home", "work", "commands"))
    for directory in (home, work, commands):
        directory.mkdir()
    command = commands / "lmclient"
    command.write_text(COMMAND)
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    for name in [*os.environ]:
        if name.startswith("XDG_") or name == "NO_COLOR":
            monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(home),
        "LMCLIENT_DATA_DIR": str(home / "data"),
        "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:asyncio",  # which take most of pytest's start
        "PYTEST_DEBUG_TEMPROOT": str(home),  # not the directory that pytest runs beside this one clean up
        redirecting.SERVER: model_server,
        SOCKET: command_server,
        **_keys(),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(work)
    return work


def _keys() -> dict[str, str]:
    """A value for every variable that a shipped profile needs."""
    text = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "profiles").glob("*.toml"))
    names = re.findall(r'= "\$\{(\w+)\}', text)
    return {name: ENDPOINT if name.endswith("ENDPOINT") else f"docs-{name.lower()}" for name in names}


@pytest.fixture
def redirects(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process asks the model server, too."""
    import aiohttp
    import httpx2

    for owner, name in (
        (aiohttp.ClientSession, "_request"),
        (httpx2.AsyncHTTPTransport, "handle_async_request"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    redirecting.redirect()


@pytest.fixture
def without_local_model(machine: Path) -> None:
    """The categories' default is the model server."""
    directory = machine.parent / "home" / ".config" / "lmclient" / "profiles"
    directory.mkdir(parents=True)
    (directory / "local.toml").write_text(LOCAL)


@pytest.fixture
def fetched(machine: Path) -> None:
    """The embedded model's weights are there already; they are fetched once per machine."""
    from lmclient.providers.local import weights

    named = os.environ.get("LMCLIENT_TEST_MODELS")
    file = weights.pull("smollm2", Path(named) if named else _own_data_dir())
    models = machine.parent / "home" / "data" / "models"
    models.mkdir(parents=True)
    (models / "smollm2.gguf").symlink_to(file)


def _own_data_dir() -> Path:
    """The data directory of the person who runs the tests, which the machine of the pages hides."""
    import pwd

    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return home / ".local" / "share" / "lmclient"


@pytest.fixture
def page_runner(machine: Path, fetched: None, redirects: None) -> Iterator[PageRunner]:
    with asyncio.Runner() as runner:
        yield PageRunner(machine, runner)
