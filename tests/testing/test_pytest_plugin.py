"""The fixtures, in a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys

PLUGIN = "lmclient.testing.pytest_plugin"
USERS_TESTS = """
import urllib.request

EXCHANGE = {"path": "/v1/models", "response": {"body": "recorded"}}

def read(url):
    with urllib.request.urlopen(url) as response:
        return response.read()

def test_fault(fault_provider):
    assert b"mock" in read(fault_provider.url("ok", key="mine") + "/models")
    assert fault_provider.stats()["ok~mine"]["requests"] == 1

def test_fault_is_shared(fault_provider):
    assert "ok~mine" in fault_provider.stats()

def test_mock(mock_provider):
    assert b"mock" in read(mock_provider.url() + "/models")

def test_replay(replay_provider):
    first = replay_provider({"one": EXCHANGE}, split=1)
    second = replay_provider([{**EXCHANGE, "name": "two"}])
    assert read(first.url("one", "v1", "models")) == read(second.url("two", "v1", "models")) == b"recorded"
"""


def test_the_fixtures_serve_a_users_tests(tmp_path):
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", PLUGIN, str(tmp_path)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_loading_the_plugin_loads_no_server():
    script = f"import pytest, sys; old = set(sys.modules); import {PLUGIN}; print(*(set(sys.modules) - old))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {"anyio", "asyncio", "typer", "lmclient.testing.hosting"} & set(loaded.split())
