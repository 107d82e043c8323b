"""`lmclient profiles`: which profiles there are, what is in one, and what is wrong with any."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmclient.cli.debug import Debug
from lmclient.cli.explain import explain
from lmclient.cli.terminal import one_line
from lmclient.errors import ProfileError

if TYPE_CHECKING:
    from lmclient.profiles.checking import KnownNames
    from lmclient.profiles.directory import Profiles
    from lmclient.profiles.reading import ProfileFile

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What stands behind the names of models.")

_COLUMNS = ("PROFILE", "PROVIDER", "MODEL", "URL", "CATEGORIES", "USABLE", "FILE")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@app.command("list")
def list_profiles(debug: Debug = False) -> None:
    """Print every profile, and whether it can be used.

    In a pipe there are tabs between the columns.
    """
    profiles = _profiles()
    try:
        categories = profiles.categories()
    except ProfileError:
        categories = {}  # unknown because a file cannot be read, which its row says
    known = _known_names()
    rows = []
    for file in profiles.files.values():
        pointing = [category for category, names in categories.items() if file.name in names]
        rows.append(_row(file, profiles, known, pointing))
    if sys.stdout.isatty():
        _print_table(rows)
        return
    for row in (_COLUMNS, *rows):
        typer.echo("\t".join(row))


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A profile or a category.")],
    debug: Debug = False,
) -> None:
    """Print all keys of a profile as TOML.

    Those that are not set are comments; no secret is shown.
    """
    from lmclient.cli.hidden import find, hidden
    from lmclient.profiles.secrets import public_url
    from lmclient.providers.redaction import redact, secrets_of

    profile, file, missing = find(_profiles(), name)
    values = hidden({**profile.model_dump(exclude={"name"}), "url": public_url(profile.url)})
    lines = [f"# {profile.name}, from {file.path}", *(f"# {one}" for one in missing), *_toml(values)]
    typer.echo(redact("\n".join(lines), secrets_of(profile)))


app.command()(explain)


@app.command()
def check(debug: Debug = False) -> None:
    """Print what is wrong with any profile.

    The status is 1 if anything is.
    """
    from lmclient.profiles import checking
    from lmclient.settings import Settings

    problems = checking.check(Settings(), _known_names())
    for problem in problems:
        typer.echo(one_line(problem.message))
    if problems:
        raise typer.Exit(1)
    typer.echo("All profiles are fine.")


def _profiles() -> Profiles:
    from lmclient.profiles.directory import Profiles
    from lmclient.settings import Settings

    return Profiles(Settings())


def _known_names() -> KnownNames:
    from lmclient import prompts, tokens
    from lmclient.profiles.checking import KnownNames
    from lmclient.providers.registry import provider_names
    from lmclient.providers.text import AUTO
    from lmclient.tokens.ranks import ENCODINGS

    return KnownNames(
        provider=provider_names(),
        prompt_format=[AUTO, *prompts.names()],
        tokenizer=tokens.names(),
        token_encoding=ENCODINGS,
    )


def _row(
    file: ProfileFile, profiles: Profiles, known: KnownNames, categories: Sequence[str]
) -> tuple[str, ...]:
    from lmclient.profiles.secrets import public_url

    values: dict[str, Any] = {}
    usable = "yes"
    try:
        found = file.examine(file.read(), profiles.variables)
    except ProfileError:
        usable = "no: cannot be read"
    else:
        values = found.values
        for problem in (*found.unresolved, *found.wrong, *known.unknown(values, file))[:1]:
            usable = "no: " + problem.message.partition(";")[0]
    provider, model, url = (str(values.get(key, "")) for key in ("provider", "model", "url"))
    row = (file.name, provider, model, public_url(url), " ".join(categories), usable, str(file.path))
    return tuple(map(one_line, row))


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"  # a name or path that is cut could not be copied
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def _toml(values: dict[str, Any]) -> Iterator[str]:
    """The lines of a TOML file: first the single values, then the tables."""
    tables = {key: value for key, value in values.items() if value and isinstance(value, dict)}
    yield from (_line(key, value) for key, value in values.items() if key not in tables)
    for key, table in tables.items():
        yield ""
        yield f"[{key}]"
        yield from (_line(inner, value) for inner, value in table.items())


def _line(key: str, value: Any) -> str:
    return f"# {key} is not set" if value is None else f"{_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(f"{value:f}" if isinstance(value, Decimal) else str(value), ensure_ascii=False)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
