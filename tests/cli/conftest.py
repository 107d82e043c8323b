"""Profiles of test servers, the command line in this process, and one on a terminal of its own."""

from __future__ import annotations

import http.client
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lmclient.cli import app
from lmclient.testing import FaultProvider, MockProvider, ReplayProvider

KEY = "sk-planted-0123456789"
SECONDS = 15

ON_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "lmclient", *sys.argv[1:]])
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and working directory, and no variables of the person who runs the tests."""
    for name in [*os.environ]:
        if name.startswith(("LMCLIENT_", "XDG_")) or name.endswith("_API_KEY") or name == "NO_COLOR":
            monkeypatch.delenv(name)
    (tmp_path / "profiles").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LMCLIENT_PROFILES_DIR", str(tmp_path / "profiles"))
    monkeypatch.setenv("LMCLIENT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the command adds the working directory
    return tmp_path


@pytest.fixture(scope="session")
def faults() -> Iterator[FaultProvider]:
    with FaultProvider.running() as provider:
        yield provider


@pytest.fixture
def write_profile(home: Path) -> Callable[..., None]:
    """`write_profile(name, url, more="")`: a profile with a key and prices."""

    def write(name: str, url: str, more: str = "") -> None:
        (home / "profiles" / f"{name}.toml").write_text(
            f'provider = "openai-chat"\nmodel = "mock"\nurl = "{url}"\napi_key = "{KEY}"\n'
            f'{more}\n[cost]\ninput = "1"\noutput = "2"\n'
        )

    return write


@pytest.fixture
def fault(faults: FaultProvider, write_profile: Callable[..., None], request: Any) -> Callable[..., Any]:
    """`fault(scenario)`: a profile of that name; called again, the counters of its requests."""
    key = re.sub(r"[^\w-]", "-", request.node.name)

    def profile_or_counters(scenario: str) -> Any:
        write_profile(scenario, faults.url(scenario, key=key))
        return faults.stats().get(f"{scenario}~{key}")

    return profile_or_counters


@pytest.fixture
def replayed(write_profile: Callable[..., None]) -> Iterator[Callable[[str], ReplayProvider]]:
    """`replayed(body)`: a profile `replayed` whose server streams this body."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def start(body: str) -> ReplayProvider:
            response = {"body": body, "content_type": "text/event-stream"}
            exchanges = {"said": {"path": "/v1/chat/completions", "response": response}}
            provider = stack.enter_context(ReplayProvider.running(exchanges))
            write_profile("replayed", provider.url("said", "v1"))
            return provider

        yield start


@pytest.fixture
def run() -> Callable[..., Result]:
    """`run(*arguments, input=None)`: the command in this process; its stdin and stdout are no terminals."""

    def invoke(*arguments: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, arguments, input=input, prog_name="lmclient")

    return invoke


@pytest.fixture
def close_seen(faults: FaultProvider) -> Callable[[], None]:
    """Returns once the fault provider has seen every connection that was closed before the call."""

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", faults.port, timeout=5)
        connection.request("GET", "/ok~after/v1/models")
        connection.getresponse().read()
        connection.close()

    return ask


class Terminal:
    """The command in a process of its own, on a pseudo-terminal that is also its controlling one."""

    def __init__(self, *arguments: str) -> None:
        self._end, terminal = pty.openpty()
        command = [sys.executable, "-c", ON_A_TERMINAL, *arguments]
        self.process = subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
        )
        os.close(terminal)
        self.output = ""
        self._seen = 0

    def type(self, keys: str) -> None:
        """Types the keys; \\r is Enter, \\x03 Ctrl-C and \\x04 Ctrl-D."""
        os.write(self._end, keys.encode())

    def expect(self, text: str) -> None:
        """Waits until `text` shows after what was expected before."""
        while (at := self.output.find(text, self._seen)) < 0:
            if not self._read():
                raise AssertionError(f"{text!r} does not show in {self.output!r}")
        self._seen = at + len(text)

    def status(self) -> int:
        """Waits for the end of the process; its exit status."""
        while self._read():
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._end)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._end], [], [], SECONDS)
        if not ready:
            raise AssertionError(f"nothing more shows for {SECONDS} seconds after {self.output!r}")
        try:
            data = os.read(self._end, 4096)
        except OSError:  # how Linux reports that the other end is closed
            data = b""
        self.output += data.decode("utf-8", "replace")
        return bool(data)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """`terminal(*arguments)`: the command on a terminal."""
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal(*arguments))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def mock() -> Iterator[MockProvider]:
    with MockProvider.running() as provider:
        yield provider


@pytest.fixture
def key() -> str:
    """The key in every profile that `write_profile` and `fault` write."""
    return KEY
