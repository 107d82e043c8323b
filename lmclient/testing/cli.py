"""`lmclient testing`: the test servers from the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from lmclient.errors import ConfigurationError

Server = TypeVar("Server")

app = typer.Typer(no_args_is_help=True, help="Test servers for clients of language models.")
serve = typer.Typer(no_args_is_help=True, help="Serve on 127.0.0.1 until Ctrl-C.")
app.add_typer(serve, name="serve")


@app.callback()
def testing() -> None:
    """Test servers for clients of language models."""


Port = Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one.")]


@serve.command()
def fault(
    port: Port = 8124,
    seed: Annotated[int, typer.Option(help="Decides where split_utf8 and tool calls are cut.")] = 0,
) -> None:
    """A provider that misbehaves on purpose: one base URL for each fault.

    Its faults are described in the module: python -m pydoc lmclient.testing.fault
    """
    from lmclient.testing.fault import FaultProvider

    _serve(
        FaultProvider.open(port=port, seed=seed),
        lambda provider: f"fault provider on http://127.0.0.1:{provider.port}",
        port,
    )


@serve.command()
def replay(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Holds the exchange files.")],
    port: Port = 8124,
    split: Annotated[int | None, typer.Option(min=1, help="Send bodies in pieces of so many bytes.")] = None,
) -> None:
    """Recorded exchanges, each under its own name.

    Their format is described in the module: python -m pydoc lmclient.testing.replay
    """
    from lmclient.testing.replay import ReplayProvider

    _serve(
        ReplayProvider.open(directory, port, split),
        lambda provider: f"{len(provider.exchanges)} exchanges on {provider.url()}",
        port,
    )


@serve.command()
def mock(port: Port = 8123) -> None:
    """A very fast provider, for measuring what a client costs."""
    from lmclient.testing.mock import MockProvider

    _serve(MockProvider.open(port=port), lambda provider: f"mock provider on {provider.url()}", port)


def _serve(server: AbstractAsyncContextManager[Server], announce: Callable[[Server], str], port: int) -> None:
    from lmclient.testing.hosting import run_until_interrupted

    try:
        run_until_interrupted(server, announce)
    except ConfigurationError as problem:
        _fail(str(problem))
    except OSError as problem:
        reason = os.strerror(problem.errno) if problem.errno else str(problem)
        _fail(f"Cannot serve on port {port}: {reason}. Use another port; --port 0 picks a free one.")


def _fail(message: str) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(1)
