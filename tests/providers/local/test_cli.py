"""`lmclient local`, run as users run it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lmclient.errors import ConfigurationError
from lmclient.providers.local.cli import app

COMMAND = [sys.executable, "-c", "from lmclient.providers.local.cli import app; app()"]


@pytest.fixture
def data_dir(smollm2_file: Path) -> str:
    return str(smollm2_file.parents[1])


def test_pull_prints_the_file(data_dir: str, smollm2_file: Path) -> None:
    outcome = CliRunner().invoke(app, ["pull", "smollm2", "--data-dir", data_dir])
    assert (outcome.exit_code, outcome.stdout) == (0, f"{smollm2_file}\n")


def test_list_prints_name_size_and_file(data_dir: str, smollm2_file: Path) -> None:
    outcome = CliRunner().invoke(app, ["list", "--data-dir", data_dir])
    assert f"smollm2\t98 MB\t{smollm2_file}\n" in outcome.stdout


def test_empty_list_names_the_command_that_fills_it(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["list", "--data-dir", str(tmp_path)])
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert "lmclient local pull smollm2" in outcome.stderr


def test_serve_prints_its_url_answers_and_stops_on_interrupt(data_dir: str) -> None:
    command = [*COMMAND, "serve", "smollm2", "--data-dir", data_dir]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/v1/models") as response:
            assert json.load(response)["data"][0]["id"] == "smollm2"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.splitlines()[-1]) == (0, "Stopped.")


def test_port_in_use_is_a_clear_error(data_dir: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = CliRunner().invoke(app, ["serve", "--port", port, "--data-dir", data_dir])
    assert isinstance(outcome.exception, ConfigurationError)
    assert f"port {port}" in str(outcome.exception)
