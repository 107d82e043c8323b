"""`lmclient prompt`: what text completion sends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lmclient.cli.debug import Debug

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile
    from lmclient.prompts import PromptFormat

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Prompts of text completion.")


@app.callback()
def prompt() -> None:
    """Prompts of text completion."""


@app.command()
def render(
    profile: Annotated[str, typer.Option("-p", "--profile", help="A profile with a prompt_format.")],
    text: Annotated[str, typer.Argument(metavar="PROMPT", help="What would be asked.")] = "Hello",
    system: Annotated[str | None, typer.Option("-s", "--system", help="How the model should act.")] = None,
    debug: Debug = False,
) -> None:
    """Print the exact prompt of a profile.

    On a terminal the special tokens are marked; in a pipe the prompt is as it would be sent. Its
    token count goes to stderr.
    """
    from lmclient.cli.counting import offline_tokenizer
    from lmclient.cli.hidden import find
    from lmclient.core.conversation import Conversation
    from lmclient.profiles.directory import Profiles
    from lmclient.settings import Settings

    found = find(Profiles(Settings()), profile).profile
    format = _format(found)
    rendered = format.render(
        Conversation.create(text, system),
        special_tokens=found.special_tokens,
        reasoning_effort=found.reasoning_effort,
    )
    tokenizer, how = offline_tokenizer(found)
    typer.echo(_marked(rendered, format) if sys.stdout.isatty() else rendered, nl=sys.stdout.isatty())
    typer.echo(f"{tokenizer.count(rendered, parse_special=True)} tokens ({how})", err=True)


def _format(profile: ModelProfile) -> PromptFormat:
    from lmclient import prompts
    from lmclient.errors import ConfigurationError

    if profile.prompt_format in ("", "auto"):
        raise ConfigurationError(
            f"Profile {profile.name!r}: prompt_format is {profile.prompt_format!r}, so its server makes the "
            f"prompt; to see one, expected one of {', '.join(prompts.names())}, or a .jinja file."
        )
    return prompts.get(profile.prompt_format)


def _marked(prompt: str, format: PromptFormat) -> str:
    """The prompt with its special tokens in reverse video."""
    from lmclient.prompts.special_tokens import token_pattern

    pattern = token_pattern(format.special_tokens)
    if pattern is None:
        return prompt
    return pattern.sub(lambda token: typer.style(token[0], reverse=True), prompt)
