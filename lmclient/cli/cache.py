"""`lmclient cache`: what is in the cache of answers, and emptying it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lmclient.cli.debug import Debug

if TYPE_CHECKING:
    from lmclient.cache.store import Store

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Answers that are kept, to give them again."
)


@app.command()
def stats(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    debug: Debug = False,
) -> None:
    """Print where the cache is, how many answers it holds, and how many bytes they take."""
    import msgspec

    enabled, store = _store()
    contents = store.contents()
    store.close()
    if as_json:
        typer.echo(json.dumps({"enabled": enabled, **msgspec.structs.asdict(contents)}))
        return
    typer.echo(f"place    {contents.place}" + ("" if enabled else "  (cache.enabled is off)"))
    typer.echo(f"entries  {contents.entries}")
    typer.echo(f"bytes    {contents.bytes}")


@app.command()
def clear(debug: Debug = False) -> None:
    """Remove all answers from the cache."""
    _, store = _store()
    removed = store.clear()
    store.close()
    typer.echo(f"Removed {removed} {'entry' if removed == 1 else 'entries'}.")


def _store() -> tuple[bool, Store]:
    """Whether the cache is on, and its store, whether or not it is."""
    from lmclient.cache.store import open_store
    from lmclient.errors import ConfigurationError
    from lmclient.settings import Settings

    settings = Settings().cache
    if settings.backend == "redis" and settings.redis_url is None:
        raise ConfigurationError("Settings: cache.redis_url is missing beside backend = 'redis'.")
    return settings.enabled, open_store(settings)
