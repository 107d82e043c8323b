"""`lmclient models`: what a server offers."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lmclient.cli.chat import DEFAULT_CATEGORY
from lmclient.cli.debug import Debug
from lmclient.cli.terminal import one_line


def models(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A category or a profile.")
    ] = DEFAULT_CATEGORY,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    debug: Debug = False,
) -> None:
    """Print the names of the models that a server offers."""
    import asyncio

    names = asyncio.run(_names(target))
    if as_json:
        typer.echo(json.dumps(names))
        return
    for name in names:
        typer.echo(one_line(name))
    if not names:
        typer.echo("The server offers no models.", err=True)


async def _names(target: str) -> list[str]:
    from lmclient.client import AsyncClient

    async with AsyncClient() as client:
        return await client.models(target)
