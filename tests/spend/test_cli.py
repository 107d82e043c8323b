"""`lmclient spend` in all its forms."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lmclient import Ledger, SpendRecord
from lmclient.cli import app

from .making import NOON, record


@pytest.fixture
async def spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a ledger of three calls, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMCLIENT_DATA_DIR", str(tmp_path / "data"))
    await book_in(
        tmp_path,
        record(cost=Decimal("0.0000001234"), input_tokens=10, output_tokens=5, tags={"user": "a"}),
        record(cost=Decimal("0.5"), profile="large", tags={"user": "b$x$"}, time=NOON.replace(day=15)),
        record(cost=Decimal("2"), currency="EUR", tags={"user": "b$x$"}),
    )
    return tmp_path


async def book_in(folder: Path, *records: SpendRecord) -> None:
    ledger = Ledger(f"sqlite:///{folder / 'data' / 'ledger.sqlite3'}")
    await ledger.book(records)
    await ledger.aclose()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["spend", *arguments])


def test_table_has_a_line_for_each_group_and_currency(spent: Path) -> None:
    assert run("--by", "profile").output.expandtabs(1) == (
        "PROFILE CURRENCY CALLS ATTEMPTS INPUT TOKENS OUTPUT TOKENS UNPRICED COST SAVED COST\n"
        "large USD 1 1 0 0 0 0.5 0\n"
        "mini EUR 1 1 0 0 0 2 0\n"
        "mini USD 1 1 10 5 0 0.0000001234 0\n"
    )


def test_days_are_the_default(spent: Path) -> None:
    days = [line.split("\t")[0] for line in run().output.splitlines()]
    assert days == ["DAY", "2026-03-14", "2026-03-14", "2026-03-15"]


def test_json_is_exact(spent: Path) -> None:
    rows = json.loads(run("--json", "--by", "day,tag:user", "--until", "2026-03-14").output)
    assert [(row["day"], row["tag:user"], row["currency"], row["cost"]) for row in rows] == [
        ("2026-03-14", "a", "USD", "0.0000001234"),
        ("2026-03-14", "b$x$", "EUR", "2"),
    ]


def test_csv_has_a_head_and_all_numbers(spent: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("--csv", "--by", "model", "--where", "tag:user=a").output)))
    assert [(row["model"], row["calls"], row["cost"]) for row in rows] == [("mock", "1", "0.0000001234")]


@pytest.mark.parametrize(
    ("by", "head"),
    [
        ("currency", ["currency"]),
        ("day,day", ["day", "currency"]),
        ("currency,profile", ["currency", "profile"]),
        ("tag:user,currency,tag:user", ["tag:user", "currency"]),
    ],
)
def test_csv_has_each_column_once_and_its_values_below(spent: Path, by: str, head: list[str]) -> None:
    names, *rows = list(csv.reader(io.StringIO(run("--csv", "--by", by).output)))
    assert names[: names.index("calls")] == head
    assert {len(row) for row in rows} == {len(names)}
    assert {row[names.index("currency")] for row in rows} == {"USD", "EUR"}


def test_table_has_a_currency_that_is_asked_for_once(spent: Path) -> None:
    assert [line.split("\t")[:2] for line in run("--by", "currency,currency").output.splitlines()] == [
        ["CURRENCY", "CALLS"],
        ["EUR", "1"],
        ["USD", "2"],
    ]


@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("moment", ["0001-01-01", "0001-01-01T00:00", "9999-12-31", "9999-12-31T23:59:59"])
def test_time_may_be_the_first_and_the_last_there_is(spent: Path, option: str, moment: str) -> None:
    rows = json.loads(run("--json", option, moment).output)
    assert len(rows) == (3 if (option == "--since") == moment.startswith("0001") else 0)


def test_time_limits_the_report(spent: Path) -> None:
    assert run("--by", "profile", "--since", "2026-03-14T12:00:01+00:00").output.count("\n") == 2


@pytest.mark.parametrize(("name", "begins"), [("out.png", b"\x89PNG"), ("out.svg", b"<?xml")])
def test_chart_is_drawn(spent: Path, name: str, begins: bytes) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    result = run("--by", "day,tag:user", "--plot", name)
    assert (result.exit_code, result.output) == (0, "")
    assert (spent / name).read_bytes().startswith(begins)


def test_empty_ledger_gives_an_empty_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    monkeypatch.setenv("LMCLIENT_DATA_DIR", str(tmp_path / "data"))
    assert run("--plot", str(tmp_path / "out.svg")).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--by", "colour"], "A report has no 'colour'"),
        (["--since", "yesterday"], "'yesterday' is no day"),
        (["--where", "user"], "'user' is not NAME=VALUE"),
        (["--plot", "out.pdf"], "out.pdf must end in .png or .svg"),
        (["--csv", "--json"], "does not go with --csv"),
        (["--watch", "--json"], "goes with no other form of output"),
    ],
)
def test_mistakes_are_named(spent: Path, arguments: list[str], complaint: str) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert complaint in result.output


@contextlib.contextmanager
def watching() -> Iterator[Callable[[bytes], None]]:
    """`lmclient spend --watch` in a terminal; what it gives waits until a text is shown there."""
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "lmclient", "spend", "--by", "profile", "--watch"]
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, start_new_session=True) as process:
        os.close(end)
        shown = b""

        def wait_for(text: bytes) -> None:
            nonlocal shown
            while text not in shown:
                shown += os.read(terminal, 65536)
            shown = shown.partition(text)[2]

        yield wait_for
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    os.close(terminal)


def test_watching_shows_what_is_booked_meanwhile(spent: Path) -> None:
    with watching() as wait_for:
        wait_for(b"large")
        asyncio.run(book_in(spent, record(profile="another")))
        wait_for(b"another")


def test_watching_goes_on_after_a_failure_that_passes(spent: Path) -> None:
    ledger = spent / "data" / "ledger.sqlite3"
    with watching() as wait_for:
        wait_for(b"large")
        ledger.rename(spent / "away")
        ledger.mkdir()
        wait_for(b"Trying again")
        ledger.rmdir()
        (spent / "away").rename(ledger)
        asyncio.run(book_in(spent, record(profile="another")))
        wait_for(b"another")
