"""`lmclient serve`, as a program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from lmclient.cli import app


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMCLIENT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    return [sys.executable, "-m", "lmclient", "serve", "--port", "0"]


def test_it_says_where_it_serves_and_stops_on_ctrl_c(command: list[str]) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        url = line.split()[2]
        answer = httpx2.get(f"{url}/v1/models")
        process.send_signal(signal.SIGINT)
        status = process.wait(10)
        errors = process.stderr.read()
    assert line.startswith("Serving at http://127.0.0.1:")
    assert [model["id"] for model in answer.json()["data"]][:2] == ["s", "m"]
    assert (status, errors) == (0, "")


def test_other_hosts_need_tokens(command: list[str]) -> None:
    done = subprocess.run([*command, "--host", "0.0.0.0"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "server.tokens" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_is_in_the_help() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert "serve" in result.output
