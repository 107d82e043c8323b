"""`lmclient serve`: the gateway to all categories and profiles."""

from __future__ import annotations

from typing import Annotated

import typer

from lmclient.cli.debug import Debug
from lmclient.errors import ConfigurationError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Where to listen; needs tokens unless loopback.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 8080,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name under which the server may be addressed, too.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Serve every category and profile to programs that speak to OpenAI, until Ctrl-C.

    Listens on this machine only, unless the settings have server.tokens.
    """
    try:
        from lmclient.server.serving import gateway, listen, run
    except ImportError as error:
        raise ConfigurationError(
            f"The gateway needs the extra 'server' ({error}); install it: pip install 'lmclient[server]'."
        ) from error
    served = gateway(host, allow_hosts=allow_host or ())
    sockets = listen(host, port)
    name = f"[{host}]" if ":" in host else host
    at = f"http://{name}:{sockets[0].getsockname()[1]}"
    run(served, sockets, lambda: typer.echo(f"Serving at {at} (the API at {at}/v1); Ctrl-C stops."))
