"""`lmclient local`: fetch, list and serve embedded models."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from lmclient.providers.local import server, weights

app = typer.Typer(help="Models that run inside lmclient, without any key.", no_args_is_help=True)

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="LMCLIENT_DATA_DIR",
        help="Where models are kept.",
        show_default="the user's data directory",
    ),
]


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="smollm2, or hf:OWNER/REPOSITORY/FILE.gguf")],
    data_dir: DataDir = None,
) -> None:
    """Fetch a model unless it is there already, and print its file."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task(f"Fetching {name}", total=None)

        def show(done: int, total: int | None) -> None:
            line.update(task, completed=done, total=total)

        file = weights.pull(name, data_dir or weights.default_data_dir(), show)
    typer.echo(file)


@app.command("list")
def list_models(data_dir: DataDir = None) -> None:
    """Print name, size and file of every model fetched so far."""
    models = weights.installed(data_dir or weights.default_data_dir())
    for name, file in models:
        typer.echo(f"{name}\t{file.stat().st_size / 1e6:.0f} MB\t{file}")
    if not models:
        typer.echo("No model yet: run `lmclient local pull smollm2`.", err=True)


@app.command()
def serve(
    model: Annotated[
        str, typer.Argument(help="smollm2, hf:OWNER/REPOSITORY/FILE.gguf or a path")
    ] = "smollm2",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    data_dir: DataDir = None,
) -> None:
    """Keep a llama.cpp server running for other programs until Ctrl-C, and print its URL."""
    file = weights.resolve(model, data_dir or weights.default_data_dir())
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops as cleanly as Ctrl-C does
    try:
        typer.echo(server.serve(file, host=host, port=port))
        typer.echo(f"Serving {file.name}; Ctrl-C stops.", err=True)
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)
