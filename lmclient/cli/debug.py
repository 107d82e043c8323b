"""`--debug`, which every command takes: before the command's name or after it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_KEY = "lmclient.debug"


def is_debugging(context: Any) -> bool:
    """Whether `--debug` was given to a command or one of its parents."""
    return bool(context.meta.get(_KEY))


def _remember(context: typer.Context, value: bool) -> bool:
    if value:
        # The contexts of a command and its parents share their `meta`.
        context.meta[_KEY] = True
    return value


Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", callback=_remember)]
