"""The test servers from the command line, as processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

COMMAND = [sys.executable, "-c", "from lmclient.testing.cli import app; app()", "serve"]


def run(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=20)


@contextmanager
def serving(command):
    """A server's process and the line it printed; it is ended by Ctrl-C, which must be clean."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        rest, problems = process.communicate(timeout=10)
        assert (process.returncode, rest, problems) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def exchanges(tmp_path):
    exchange = {"path": "/v1/models", "response": {"body": "recorded"}}
    (tmp_path / "rivers.json").write_text(json.dumps(exchange))
    return tmp_path


def test_serve_fault_prints_its_address(http_send):
    with serving([*COMMAND, "fault", "--port", "0", "--seed", "3"]) as line:
        assert re.fullmatch(r"fault provider on http://127\.0\.0\.1:\d+", line)
        assert http_send(f"{line.split()[-1]}/ok/v1").text


def test_serve_mock_prints_its_base_url(http_send):
    with serving([*COMMAND, "mock", "--port", "0"]) as line:
        assert re.fullmatch(r"mock provider on http://127\.0\.0\.1:\d+/v1", line)
        assert http_send(line.split()[-1], "models").status == 200


def test_serve_replay_prints_how_many_exchanges_it_has(exchanges, http_send):
    with serving([*COMMAND, "replay", str(exchanges), "--port", "0", "--split", "1"]) as line:
        assert re.fullmatch(r"1 exchanges on http://127\.0\.0\.1:\d+", line)
        assert http_send(f"{line.split()[-1]}/rivers/v1", "models").body == b"recorded"


@pytest.mark.parametrize(("module", "words"), [("fault", []), ("mock", []), ("replay", ["."])])
def test_modules_start_the_same_servers(module, words):
    command = [sys.executable, "-W", "error", "-m", f"lmclient.testing.{module}", *words, "--port", "0"]
    with serving(command) as line:
        assert " on http://127.0.0.1:" in line


def test_a_taken_port_is_one_readable_line(provider):
    done = run("mock", "--port", str(provider.port))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        rf"Cannot serve on port {provider.port}: Address already in use\. .*--port 0.*\n", done.stderr
    )


def test_a_missing_directory_is_one_readable_line(tmp_path):
    done = run("replay", str(tmp_path / "nowhere"), "--port", "0")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "nowhere" in done.stderr


def test_a_split_of_zero_is_refused(tmp_path):
    done = run("replay", str(tmp_path), "--split", "0")
    assert done.returncode == 2
    assert "--split" in done.stderr
