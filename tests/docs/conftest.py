"""A machine for the pages: a home of its own, keys of every vendor, and a server that plays them all."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lmclient.testing.hosting import running_in_thread

from . import redirecting
from .model_server import open_server
from .page_runner import PageRunner

ROOT = Path(__file__).parents[2]
ENDPOINT = "https://example.invalid"
LOCAL = 'provider = "openai-chat"\nmodel = "docs"\nurl = "https://docs.invalid/v1"\n[cost]\ninput = "0"\noutput = "0"\n'
"""Stands for the embedded model on pages that are about something else."""


@pytest.fixture(scope="session")
def model_server() -> Iterator[str]:
    with running_in_thread(open_server()) as url:
        yield url


@pytest.fixture
def machine(model_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; all that lmclient looks up elsewhere is below it, too."""
    home, work, commands = (tmp_path / name for name in ("home", "work", "commands"))
    for directory in (home, work, commands):
        directory.mkdir()
    command = commands / "lmclient"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{redirecting.__file__}" "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    for name in [*os.environ]:
        if name.startswith("XDG_") or name == "NO_COLOR":
            monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(home),
        "LMCLIENT_DATA_DIR": str(home / "data"),
        "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        redirecting.SERVER: model_server,
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

    for owner, name in ((aiohttp.ClientSession, "_request"), (httpx2.AsyncHTTPTransport, "handle_async_request")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    redirecting.redirect()


@pytest.fixture
def without_local_model(machine: Path) -> None:
    """The categories' default is the model server."""
    directory = machine.parent / "home" / ".config" / "lmclient" / "profiles"
    directory.mkdir(parents=True)
    (directory / "local.toml").write_text(LOCAL)


@pytest.fixture
def with_local_model(machine: Path) -> None:
    """The categories' default is the real embedded model, fetched once per machine."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
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
def page_runner(machine: Path, redirects: None) -> Iterator[PageRunner]:
    with asyncio.Runner() as runner:
        yield PageRunner(machine, runner)
