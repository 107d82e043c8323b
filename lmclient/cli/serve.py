"""`lmclient serve`: the gateway to all categories and profiles."""

from __future__ import annotations

from typing import Annotated

import typer

from lmclient.cli.debug import Debug

app = typer.Typer(rich_markup_mode=None)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Where to listen; needs tokens unless loopback.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 8080,
    debug: Debug = False,
) -> None:
    """Serve every category and profile to programs that speak to OpenAI, until Ctrl-C."""
    from lmclient.server import create_app
    from lmclient.server.serving import listen
    from lmclient.server.serving import serve as run

    app = create_app()
    sockets = listen(host, port)
    at = sockets[0].getsockname()[1]
    run(app, sockets, lambda: typer.echo(f"Serving at http://{host}:{at}/v1 (Ctrl-C stops)"))
