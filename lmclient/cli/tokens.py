"""`lmclient tokens`: how many tokens a text has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmclient.cli.debug import Debug

if TYPE_CHECKING:
    from lmclient.tokens import Tokenizer


def tokens(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Without it, what is piped in.")] = None,
    files: Annotated[
        list[Path] | None, typer.Option("-f", "--file", help="A text file; may be given several times.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("-p", "--profile", help="Count as for this profile or category.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Count the tokens of a text, of files or of stdin.

    No server is asked. Without a profile the encoding is o200k_base.
    """
    tokenizer = _tokenizer(profile)
    if text is not None:
        typer.echo(tokenizer.count(text))
    for file in files or ():
        typer.echo(f"{tokenizer.count(_decoded(_bytes_of(file), str(file)))}\t{file}")
    if text is None and not files:
        typer.echo(tokenizer.count(_decoded(sys.stdin.buffer.read(), "stdin")))


def _tokenizer(profile: str | None) -> Tokenizer:
    from lmclient.tokens import get

    if profile is None:
        return get("tiktoken")
    from lmclient.cli.counting import offline_tokenizer
    from lmclient.cli.hidden import find
    from lmclient.profiles.directory import Profiles
    from lmclient.settings import Settings

    tokenizer, how = offline_tokenizer(find(Profiles(Settings()), profile).profile)
    typer.echo(how, err=True)
    return tokenizer


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="--file") from error


def _decoded(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{source} is not UTF-8 text", param_hint="TEXT") from error
