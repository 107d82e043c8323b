"""The group of all commands: it loads the mounted ones when they run, and reports every error."""

from __future__ import annotations

import importlib
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from lmclient.cli.debug import is_debugging
from lmclient.cli.terminal import one_line, safe
from lmclient.errors import LMClientError

MOUNTED = {
    "serve": ("lmclient.cli.serve", "The gateway for programs that speak to OpenAI, and its pages."),
    "flow": ("lmclient.cli.flow", "Flows of agents."),
    "cache": ("lmclient.cli.cache", "The answers that are kept."),
    "local": ("lmclient.providers.local.cli", "Models that run inside lmclient, without any key."),
    "testing": ("lmclient.testing.cli", "Test servers for clients of language models."),
}
"""Commands that live elsewhere: the module with their `app`, and their line in the help."""


class Commands(TyperGroup):
    """Errors become one line on stderr and the status 1; Ctrl-C becomes the status 130."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, a mounted one loaded."""
        if args and args[0] in MOUNTED:
            module = importlib.import_module(MOUNTED[args[0]][0])
            self.commands[args[0]] = typer.main.get_command(module.app)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise  # typer ends the process for them: with a status, a usage message, or quietly
        except LMClientError as error:
            message = str(error)
            problem: Exception = error
        except Exception as error:  # the outermost boundary: nobody else would report it
            message = _without_keys(f"{type(error).__name__}: {error} (unexpected; --debug shows where)")
            problem = error
        report(message, problem if is_debugging(ctx) else None)
        raise typer.Exit(1)


def report(message: str, error: BaseException | None = None) -> None:
    """Prints an error message in one line on stderr, after the traceback of `error`."""
    if error is not None:
        typer.echo(safe(_without_keys("".join(traceback.format_exception(error)))), err=True, nl=False)
    typer.echo(f"Error: {one_line(message)}", err=True)


def _without_keys(text: str) -> str:
    """The text without the keys of any profile: the message of a foreign exception may show one."""
    from lmclient.profiles.directory import Profiles
    from lmclient.providers.redaction import redact, secrets_of
    from lmclient.settings import Settings

    try:
        profiles = Profiles(Settings())
        names = list(profiles.files)
    except (LMClientError, OSError):
        return text  # then no profile was read before, either
    for name in names:
        try:
            text = redact(text, secrets_of(profiles.load(name)))
        except LMClientError:
            continue  # what cannot be loaded was not used
    return text
