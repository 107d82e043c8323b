"""`lmclient spend`: what the calls have cost."""

from __future__ import annotations

import csv
import datetime
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmclient.cli.debug import Debug
from lmclient.cli.terminal import one_line

if TYPE_CHECKING:
    from rich.table import Table

    from lmclient.spend.reports import SpendRow, When

_NUMBERS = ("calls", "attempts", "requests", "input_tokens", "cached_input_tokens", "output_tokens",
            "reasoning_tokens", "estimated", "unpriced", "cost", "saved_cost")  # fmt: skip
_SHOWN = ("calls", "attempts", "input_tokens", "output_tokens", "unpriced", "cost", "saved_cost")
_REFRESH = 1.0
"""Seconds between two looks at the ledger of `--watch`."""


def spend(
    by: Annotated[
        str,
        typer.Option(
            "--by", help="day, category, profile, provider, model or tag:NAME; several with commas."
        ),
    ] = "day",
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="From this day (UTC) or ISO time on.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DATE", help="Up to and with this day, or before this time."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="NAME=VALUE", help="Only such calls, as tag:user=42."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the costs into a .png or .svg file.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; costs are text, to be exact.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the ledger until Ctrl-C.")] = False,
    debug: Debug = False,
) -> None:
    """Print what the calls have cost.

    Each currency has lines of its own. UNPRICED are attempts that used tokens at an unknown price, which
    no cost includes. In a pipe there are tabs between the columns.
    """
    groups = list(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    if plot is not None and plot.suffix.lower() not in (".png", ".svg"):
        raise typer.BadParameter(f"{plot} must end in .png or .svg", param_hint="--plot")
    if as_csv and as_json:
        raise typer.BadParameter("does not go with --csv", param_hint="--json")
    if watch and (as_csv or as_json or plot):
        raise typer.BadParameter("goes with no other form of output", param_hint="--watch")
    question = _Question(groups, _moment(since, "--since"), _moment(until, "--until"), _pairs(where))
    if watch:
        _watch(question)
        return
    rows = question.ask()
    if plot is not None:
        from lmclient.spend.plot import plot as draw

        draw(rows, groups, plot)
    if as_json:
        typer.echo(json.dumps([_values(row, groups) for row in rows], indent=2, ensure_ascii=False))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([*_keys(groups), *_NUMBERS])
        writer.writerows(_values(row, groups).values() for row in rows)
    elif plot is None:
        _print(rows, groups)


class _Question:
    """A report that can be asked for again and again."""

    def __init__(
        self, by: list[str], since: When | None, until: When | None, where: dict[str, str | None]
    ) -> None:
        self.by, self._since, self._until, self._where = by, since, until, where

    def ask(self) -> list[SpendRow]:
        import asyncio

        from lmclient.settings import Settings
        from lmclient.spend.client import AsyncSpend
        from lmclient.spend.ledger import Ledger

        url = Settings().spend.url
        assert url is not None  # filled in by the settings
        reader = AsyncSpend(Ledger(url))
        return asyncio.run(reader.report(self.by, since=self._since, until=self._until, where=self._where))


def _moment(text: str | None, option: str) -> When | None:
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no day (2026-01-31) and no ISO time (2026-01-31T12:00)", param_hint=option
        ) from None


def _pairs(where: list[str] | None) -> dict[str, str | None]:
    pairs: dict[str, str | None] = {}
    for pair in where or ():
        name, mark, value = pair.partition("=")
        if not mark:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--where")
        pairs[name] = value or None
    return pairs


def _keys(groups: Sequence[str]) -> list[str]:
    """What tells the rows apart: the groups, and the currency if that is none of them."""
    return list(dict.fromkeys([*groups, "currency"]))


def _values(row: SpendRow, groups: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {name: row.value(name) for name in _keys(groups)}
    for name in _NUMBERS:
        number = getattr(row, name)
        values[name] = number if number is None or isinstance(number, int) else f"{number:f}"
    return values


def _lines(rows: Sequence[SpendRow], groups: Sequence[str]) -> list[list[str]]:
    """The head of the table and its lines."""
    names = [*_keys(groups), *_SHOWN]
    lines = [[name.removeprefix("tag:").replace("_", " ").upper() for name in names]]
    for row in rows:
        values = _values(row, groups)
        cells = [values[name] for name in names]
        lines.append(["-" if cell is None else one_line(str(cell)) for cell in cells])
    return lines


def _print(rows: Sequence[SpendRow], groups: Sequence[str]) -> None:
    if not sys.stdout.isatty():
        for line in _lines(rows, groups):
            typer.echo("\t".join(line))
        return
    from rich.console import Console

    Console().print(_table(rows, groups))


def _table(rows: Sequence[SpendRow], groups: Sequence[str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    head, *lines = _lines(rows, groups)
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(head):
        table.add_column(name, justify="left" if index < len(_keys(groups)) else "right", overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def _watch(question: _Question) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from lmclient.errors import LMClientError

    table = _table(question.ask(), question.by)
    with Live(table, auto_refresh=False) as live:
        while True:
            time.sleep(_REFRESH)
            try:
                table = _table(question.ask(), question.by)
                live.update(table, refresh=True)
            except LMClientError as error:  # the question was right before, so this may pass
                live.update(Group(table, Text(f"{one_line(str(error))} Trying again.")), refresh=True)
