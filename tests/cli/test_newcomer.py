"""What someone sees who has just installed lmclient and configured nothing."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("lmclient.providers.local.provider", reason="the provider llama-cpp is not there")


def test_without_weights_the_error_says_which_command_fetches_them(run):
    done = run("chat", "Hi")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "lmclient local pull smollm2" in done.stderr


def test_without_the_extra_the_error_says_which_command_installs_it(run, home, monkeypatch):
    (home / "data" / "models").mkdir(parents=True)
    (home / "data" / "models" / "smollm2.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    done = run("chat", "Hi")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "pip install 'lmclient[local]'" in done.stderr


def test_explain_starts_no_server(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    done = run("profiles", "explain", "local", "Hi")
    assert done.exit_code == 0
    assert '"content": "Hi"' in done.stdout
    assert "Price: 0 USD for the input, at most 0 USD for the output" in done.stdout
