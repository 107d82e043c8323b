"""The test servers from the command line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from lmclient.testing.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["serve", *arguments])


@contextmanager
def serving(module, *arguments):
    """The line that a server prints in a process of its own; Ctrl-C ends it, which must be clean."""
    command = [sys.executable, "-W", "error", "-m", f"lmclient.testing.{module}", *arguments, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        rest, problems = process.communicate(timeout=10)
        assert (process.returncode, rest, problems) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


def test_the_fault_provider_prints_its_address(http_send):
    with serving("fault", "--seed", "3") as line:
        assert re.fullmatch(r"fault provider on http://127\.0\.0\.1:\d+", line)
        assert http_send(f"{line.split()[-1]}/ok/v1").text


def test_the_mock_provider_prints_its_base_url(http_send):
    with serving("mock") as line:
        assert re.fullmatch(r"mock provider on http://127\.0\.0\.1:\d+/v1", line)
        assert http_send(line.split()[-1], "models").status == 200


def test_the_replay_provider_prints_how_many_exchanges_it_has(tmp_path, http_send):
    exchange = {"path": "/v1/models", "response": {"body": "recorded"}}
    (tmp_path / "rivers.json").write_text(json.dumps(exchange))
    with serving("replay", str(tmp_path), "--split", "1") as line:
        assert re.fullmatch(r"1 exchanges on http://127\.0\.0\.1:\d+", line)
        assert http_send(f"{line.split()[-1]}/rivers/v1", "models").body == b"recorded"


@pytest.mark.parametrize("command", [["fault"], ["mock"], ["replay", "."]])
def test_a_taken_port_is_one_readable_line(provider, command):
    done = run(*command, "--port", str(provider.port))
    assert (done.exit_code, done.stdout) == (1, "")
    message = rf"Cannot serve on port {provider.port}: Address already in use\. .*--port 0.*\n"
    assert re.fullmatch(message, done.stderr)


def test_a_missing_directory_is_one_readable_line(tmp_path):
    done = run("replay", str(tmp_path / "nowhere"))
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "nowhere" in done.stderr


def test_a_split_of_zero_is_refused():
    assert run("replay", ".", "--split", "0").exit_code == 2
