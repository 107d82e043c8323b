"""The command `lmclient`."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
from typing import Annotated

import typer

from lmclient.cli.chat import chat as chat_command
from lmclient.cli.commands import MOUNTED, Commands
from lmclient.cli.debug import Debug
from lmclient.cli.models import models as models_command
from lmclient.cli.profiles import app as profiles_app
from lmclient.cli.prompt import app as prompt_app
from lmclient.cli.spend import spend as spend_command
from lmclient.cli.tokens import tokens as tokens_command

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    # Without rich, `--help` is twice as quick, and mistakes are reported in one line.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"lmclient {importlib.metadata.version('lmclient')}")
        raise typer.Exit


@app.callback()
def lmclient(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
    debug: Debug = False,
) -> None:
    """Talk to any language model by category."""
    with contextlib.suppress(FileNotFoundError):  # a folder that was removed
        if (folder := os.getcwd()) not in sys.path:
            sys.path.append(folder)  # for the interceptors that the settings name


app.command()(chat_command)
app.command()(models_command)
app.command()(spend_command)
app.command()(tokens_command)
app.add_typer(profiles_app, name="profiles")
app.add_typer(prompt_app, name="prompt")
for name, (_, summary) in MOUNTED.items():
    app.add_typer(typer.Typer(), name=name, help=summary)


def main() -> None:
    """Runs the command line of this process; ends it with a status of 0, 1, 2 (usage) or 130 (Ctrl-C)."""
    for stream in (sys.stdout, sys.stderr):
        # What a terminal of another encoding cannot show must not end an answer.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    app(prog_name="lmclient")
