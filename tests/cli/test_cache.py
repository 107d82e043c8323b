"""`lmclient cache`."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest

from lmclient import Client


@pytest.fixture
def filled(fault, monkeypatch):
    """A cache with one answer."""
    monkeypatch.setenv("LMCLIENT_CACHE__ENABLED", "true")
    fault("ok")
    with Client() as client:
        client.complete("ok", "Hi")


def test_stats_tell_what_there_is(run, filled, home):
    stats = json.loads(run("cache", "stats", "--json").stdout)
    assert (stats["enabled"], stats["place"], stats["entries"]) == (True, str(home / "data" / "cache"), 1)
    assert stats["bytes"] > 500
    assert "entries  1\n" in run("cache", "stats").stdout


def test_clear_removes_all(run, filled):
    assert run("cache", "clear").stdout == "Removed 1 entry.\n"
    assert json.loads(run("cache", "stats", "--json").stdout)["entries"] == 0
    with Client() as client:
        assert not client.complete("ok", "Hi").cached


def test_a_cache_that_is_off_is_said_to_be(run):
    assert "cache.enabled is off" in run("cache", "stats").stdout


def test_a_cache_that_cannot_be_used_is_one_line(run, home, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("LMCLIENT_CACHE__DIR", str(home / "file"))
    done = run("cache", "stats")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "cannot be used" in done.stderr


def test_stats_of_no_cache_make_none(run, home, monkeypatch):
    monkeypatch.setenv("LMCLIENT_CACHE__DIR", str(home / "somewhere"))
    assert "entries  0\n" in run("cache", "stats").stdout
    assert not (home / "somewhere").exists()


def test_stats_leave_what_is_no_cache(run, home, monkeypatch):
    monkeypatch.setenv("LMCLIENT_CACHE__DIR", str(home))
    file = home / "cache.db"
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE Cache (id, precious)")
    for content in (file.read_bytes(), b"garbage"):
        file.write_bytes(content)
        others = {*home.iterdir()}
        done = run("cache", "stats")
        assert (done.exit_code, "cannot be used" in done.stderr) == (1, True)
        assert (file.read_bytes(), {*home.iterdir()}) == (content, others)
