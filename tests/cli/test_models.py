"""`lmclient models`."""

from __future__ import annotations

import json


def test_the_names_are_printed_one_a_line(run, write_profile, mock):
    write_profile("fast", mock.url())
    assert run("models", "fast").stdout == "mock\n"


def test_json_is_a_list(run, write_profile, mock):
    write_profile("fast", mock.url())
    assert json.loads(run("models", "fast", "--json").stdout) == ["mock"]


def test_a_server_that_is_not_there_is_one_line(run, write_profile, monkeypatch):
    monkeypatch.setenv("LMCLIENT_RETRY__ATTEMPTS", "1")
    write_profile("gone", "http://127.0.0.1:9")
    done = run("models", "gone")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "127.0.0.1" in done.stderr
