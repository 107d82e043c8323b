"""`lmclient prompt`: what text completion sends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lmclient.cli.debug import Debug

if TYPE_CHECKING:
    from lmclient.core.conversation import Conversation
    from lmclient.profiles.model import ModelProfile
    from lmclient.prompts import PromptFormat
    from lmclient.providers.text import Prompt
    from lmclient.settings import Settings

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
    token count goes to stderr. Only the prompt format "auto" asks a server.
    """
    import asyncio

    from lmclient.cli.hidden import find
    from lmclient.core.conversation import Conversation
    from lmclient.profiles.directory import Profiles
    from lmclient.settings import Settings

    settings = Settings()
    found = find(Profiles(settings), profile).profile
    prompt, count, how = asyncio.run(_prompt(settings, found, Conversation.create(text, system)))
    if sys.stdout.isatty():
        typer.echo(_marked(prompt.text, prompt.served.format))
    else:
        typer.echo(prompt.text, nl=False)
    if prompt.bos:
        typer.echo(f"The server puts {prompt.bos} in front.", err=True)
    typer.echo(f"{count} tokens ({how})", err=True)


async def _prompt(
    settings: Settings, profile: ModelProfile, conversation: Conversation
) -> tuple[Prompt, int, str]:
    """The prompt, its tokens, and how they were counted."""
    from lmclient.cli.counting import offline_tokenizer
    from lmclient.client import http_options
    from lmclient.core.request import CompletionRequest
    from lmclient.errors import ConfigurationError
    from lmclient.providers.counting import count_marked, count_request
    from lmclient.providers.pool import ProviderPool
    from lmclient.providers.text import AUTO, WritesPrompts

    pool = ProviderPool(http_options(settings), settings.data_dir)
    request = CompletionRequest(profile=profile, conversation=conversation)
    try:
        provider = pool.provider(profile)
        if not isinstance(provider, WritesPrompts):
            raise ConfigurationError(
                f"Profile {profile.name!r}: its provider {profile.provider!r} chats, so its server makes the "
                'prompt; to see one, use a profile with provider = "openai-text".'
            )
        prompt = await provider.prompt(request)
        if profile.prompt_format == AUTO:
            return prompt, await count_request(provider, request), "counted by the server"
        tokenizer, how = offline_tokenizer(profile)
        count = count_marked(tokenizer, prompt.text, prompt.served.format) + bool(prompt.bos)
        return prompt, count, how
    finally:
        await pool.aclose()


def _marked(prompt: str, format: PromptFormat) -> str:
    """The prompt with its special tokens in reverse video."""
    from lmclient.prompts.special_tokens import token_pattern

    pattern = token_pattern(format.special_tokens)
    if pattern is None:
        return prompt
    return pattern.sub(lambda token: typer.style(token[0], reverse=True), prompt)
