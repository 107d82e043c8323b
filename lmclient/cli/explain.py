"""`lmclient profiles explain`: what a call would send and cost, without sending it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmclient.cli.debug import Debug
from lmclient.cli.terminal import one_line

if TYPE_CHECKING:
    from lmclient.core.http import HttpRequest
    from lmclient.profiles.model import ModelProfile
    from lmclient.settings import Settings

_DEFAULT_PROMPT = "Hello"


def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A profile or a category.")],
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What would be asked.")] = _DEFAULT_PROMPT,
    debug: Debug = False,
) -> None:
    """Show what a call would send and cost.

    Nothing is sent, and no secret is shown.
    """
    import asyncio

    from lmclient.cli.hidden import find
    from lmclient.profiles.directory import Profiles
    from lmclient.providers.redaction import redact, secrets_of
    from lmclient.settings import Settings

    settings = Settings()
    profile, file, missing = find(Profiles(settings), name)
    request = asyncio.run(_preview(settings, profile, prompt))
    body = json.loads(request.body)
    lines = [
        f"Profile {profile.name}, from {file.path}; nothing is sent.",
        *(f"Missing: {one}" for one in missing),
        "",
        *_request_lines(request, profile, body),
        "",
        *_price_lines(profile, _count(profile, body, prompt)),
    ]
    typer.echo(redact("\n".join(lines), secrets_of(profile)))


async def _preview(settings: Settings, profile: ModelProfile, prompt: str) -> HttpRequest:
    from lmclient.client import AsyncClient

    async with AsyncClient(settings) as client:
        return client.preview(profile, prompt)


def _request_lines(request: HttpRequest, profile: ModelProfile, body: dict[str, Any]) -> Iterator[str]:
    from lmclient.cli.hidden import hidden
    from lmclient.core.http import public_headers
    from lmclient.profiles.secrets import public_url

    yield f"{request.method} {public_url(request.url)}"
    for header, value in hidden(public_headers(request.headers)).items():
        yield one_line(f"{header}: {value}")
    yield ""
    # Only what the profile itself adds can hold a secret; the rest is shown as it is.
    shown = {
        key: hidden({key: value})[key] if key in profile.extra_body else value for key, value in body.items()
    }
    yield json.dumps(shown, indent=2, ensure_ascii=False)


def _count(profile: ModelProfile, body: dict[str, Any], prompt: str) -> tuple[int, str]:
    from lmclient import prompts, tokens
    from lmclient.cli.counting import offline_tokenizer
    from lmclient.core.conversation import Conversation
    from lmclient.providers.counting import count_marked

    tokenizer, how = offline_tokenizer(profile)
    if isinstance(body.get("prompt"), str):
        return count_marked(tokenizer, body["prompt"], prompts.get(profile.prompt_format)), how
    return tokens.count_messages(Conversation.create(prompt), tokenizer), how


def _price_lines(profile: ModelProfile, count: tuple[int, str]) -> Iterator[str]:
    import msgspec

    from lmclient.core.usage import Usage
    from lmclient.spend.prices import price

    input_tokens, how = count
    output_tokens = profile.max_tokens or 0
    yield f"Input: {input_tokens} tokens ({how})"
    limit = f"at most {output_tokens} tokens" if output_tokens else "as many tokens as the server allows"
    yield f"Output: {limit}"
    currency = profile.cost.currency
    before = price(Usage(input_tokens=input_tokens), profile.cost)
    # With the input, because the two may be priced together; and all of it may be reasoning.
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    text = price(usage, profile.cost)
    reasoning = price(msgspec.structs.replace(usage, reasoning_tokens=output_tokens), profile.cost)
    if before is None or text is None or reasoning is None:
        yield "Price: unknown; the profile states none"
    elif output_tokens:
        yield (
            f"Price: {_amount(before)} {currency} for the input, "
            f"at most {_amount(max(text, reasoning) - before)} {currency} for the output"
        )
    else:
        yield f"Price: {_amount(before)} {currency} for the input; the output has no limit"


def _amount(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
