"""The command itself: help, version, mounted commands, and what it never shows."""

from __future__ import annotations

import importlib.metadata
import io
import subprocess
import sys

import pytest

from lmclient.cli import main

LIST_MODULES = """
import sys
from lmclient.cli import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
HEAVY = {"lmclient.client", "asyncio", "pydantic", "aiohttp", "rich", "tiktoken", "openai", "jinja2"}


def test_help_loads_nothing_heavy():
    command = [sys.executable, "-c", LIST_MODULES, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "chat " in done.stdout
    assert not HEAVY & set(done.stderr.splitlines())


def test_the_version_is_that_of_the_package(run):
    assert run("--version").stdout == f"lmclient {importlib.metadata.version('lmclient')}\n"


def test_what_a_terminal_cannot_show_does_not_end_the_answer(fault, monkeypatch):
    fault("split_utf8")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="iso-8859-1"))
    monkeypatch.setattr(sys, "argv", ["lmclient", "chat", "-p", "split_utf8", "Hi"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert b"?" in shown.getvalue()


@pytest.mark.parametrize(
    ("command", "inside"),
    [("local", "pull"), ("testing", "serve"), ("profiles", "explain")],
)
def test_groups_of_commands_are_reached(run, command, inside):
    assert f"\n  {command} " in run("--help").stdout
    assert inside in run(command, "--help").stdout


def test_an_error_of_a_mounted_command_is_one_line(run):
    done = run("local", "pull", "nope")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("Error: ")


def test_wrong_settings_are_one_line(run, monkeypatch):
    monkeypatch.setenv("LMCLIENT_RETRY__ATTEMPTS", "many")
    done = run("chat", "Hi")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "retry.attempts" in done.stderr


def test_a_command_that_is_misspelled_is_explained(run):
    done = run("chatt")
    assert done.exit_code == 2
    assert "Did you mean 'chat'" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("chat", "-p", "unauthorized", "Hi"),
        ("chat", "-p", "unauthorized", "Hi", "--debug"),
        ("chat", "-p", "unauthorized", "Hi", "--json", "--no-stream", "--debug"),
        ("models", "unauthorized", "--debug"),
        ("profiles", "list"),
        ("profiles", "show", "unauthorized"),
        ("profiles", "explain", "unauthorized"),
        ("profiles", "check"),
    ],
    ids=" ".join,
)
def test_a_key_never_shows(run, fault, key, monkeypatch, arguments):
    monkeypatch.setenv("LMCLIENT_CATEGORIES__M", "unauthorized")
    fault("unauthorized")
    done = run(*arguments)
    assert done.output
    assert key not in done.output


def test_a_key_in_a_foreign_exception_never_shows(run, fault, key, monkeypatch):
    fault("ok")

    def leak(*_: object) -> None:
        raise RuntimeError(f"sent {key}")

    monkeypatch.setattr("lmclient.cli.answer.print_json", leak)
    for flag in ("--json", "--debug"):
        done = run("chat", "-p", "ok", "Hi", "--json", flag)
        assert "sent ***" in done.stderr
        assert key not in done.output


def test_a_key_written_as_a_number_never_shows(run, home):
    (home / "profiles" / "odd.toml").write_text('provider = "openai-chat"\napi_key = 9876543210')
    for arguments in (("profiles", "check"), ("profiles", "list"), ("chat", "-p", "odd", "Hi", "--debug")):
        done = run(*arguments)
        assert "api_key: expected text" in done.output
        assert "9876543210" not in done.output
