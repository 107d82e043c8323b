"""`lmclient tokens`."""

from __future__ import annotations

import pytest


def test_a_text_is_counted(run):
    assert run("tokens", "Hello world").stdout == "2\n"


def test_stdin_is_counted(run):
    assert run("tokens", input="Hello world").stdout == "2\n"


def test_files_are_counted_each(run, home):
    (home / "a.txt").write_text("Hello world")
    (home / "b.txt").write_text("")
    assert run("tokens", "-f", "a.txt", "-f", "b.txt").stdout == "2\ta.txt\n0\tb.txt\n"


def test_a_profile_chooses_the_tokenizer(run, home):
    (home / "profiles" / "plain.toml").write_text(
        'provider = "openai-chat"\nmodel = "m"\ntokenizer = "fallback"'
    )
    done = run("tokens", "-p", "plain", "Hello world")
    assert (done.exit_code, done.stderr) == (0, "fallback\n")
    assert int(done.stdout) > 0


@pytest.mark.parametrize(
    ("arguments", "piped", "problem"),
    [((), b"\xff", "stdin is not UTF-8"), (("-f", "none.txt"), "", "none.txt cannot be read: No such file")],
)
def test_what_is_no_text_is_explained(run, arguments, piped, problem):
    done = run("tokens", *arguments, input=piped)
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
