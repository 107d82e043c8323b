"""`lmclient chat`: one answer, or a chat until Ctrl-D."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lmclient.cli.debug import Debug, is_debugging

if TYPE_CHECKING:
    from lmclient.cli.conversing import Asker
    from lmclient.client import CallOptions
    from lmclient.core.conversation import Conversation
    from lmclient.profiles.directory import Target
    from lmclient.settings import Settings

DEFAULT_CATEGORY = "m"
_QUIT = "/quit"


def chat(
    context: typer.Context,
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="Without it, a chat until Ctrl-D begins.")
    ] = None,
    category: Annotated[
        str | None, typer.Option("-c", "--category", help="s, m, l, xl, hot, cold or your own; default m.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("-p", "--profile", help="A profile instead of a category.")
    ] = None,
    system: Annotated[str | None, typer.Option("-s", "--system", help="How the model should act.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, help="Limit of output tokens; 0 is the server's own.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="0 is the most likely text.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")] = False,
    no_stream: Annotated[bool, typer.Option("--no-stream", help="Ask for the answer in one piece.")] = False,
    debug: Debug = False,
) -> None:
    """Ask a model, or chat with it.

    Text piped in is the prompt, or follows it: git diff | lmclient chat "Write a commit message."
    In a chat, Ctrl-C ends an answer, /quit or Ctrl-D the chat.
    """
    question = _question(prompt)
    if question is None and (as_json or not sys.stdout.isatty()):
        raise typer.BadParameter("expected a prompt, as an argument or piped in", param_hint="PROMPT")

    from lmclient.cli.conversing import asking
    from lmclient.core.conversation import Conversation
    from lmclient.settings import Settings

    settings = Settings()
    target = _target(category, profile, settings)
    options: CallOptions = {"max_tokens": max_tokens, "temperature": temperature}
    conversation = Conversation()
    if system is not None:
        conversation.add("system", system)
    with asking(settings, target, options, streaming=not no_stream) as asker:
        if question is None:
            _chat(asker, conversation, debug=is_debugging(context))
        else:
            _answer(asker, conversation.add("user", question), as_json=as_json)


def _question(prompt: str | None) -> str | None:
    """The prompt, a blank line and the text piped in; None where a person is asked for it."""
    piped = _piped_text()
    if prompt is None and piped is None:
        return None
    question = "\n\n".join(part for part in (prompt, piped) if part and not part.isspace())
    if not question:
        raise typer.BadParameter("the prompt is empty; expected some text", param_hint="PROMPT")
    return question


def _piped_text() -> str | None:
    if sys.stdin is None or sys.stdin.isatty():
        return None
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter("the text piped in is not UTF-8", param_hint="PROMPT") from error


def _target(category: str | None, profile: str | None, settings: Settings) -> Target:
    if profile is None:
        return category or DEFAULT_CATEGORY
    if category is not None:
        raise typer.BadParameter("expected a category or a profile, not both", param_hint="-c, -p")

    from lmclient.profiles.directory import Profiles

    # As a name, a category of the same name would be taken.
    return Profiles(settings).load(profile)


def _answer(asker: Asker, conversation: Conversation, *, as_json: bool) -> None:
    from lmclient.cli.answer import AnswerPrinter, print_json, print_summary

    if as_json:
        answer = asker.ask(conversation, lambda chunk: None)
    else:
        printer = AnswerPrinter()
        try:
            answer = asker.ask(conversation, printer.show)
        finally:
            printer.finish()
    if answer.interrupted:
        raise KeyboardInterrupt
    if as_json:
        print_json(answer.completion)
    else:
        print_summary(answer.completion)


def _chat(asker: Asker, conversation: Conversation, *, debug: bool) -> None:
    """Asks for prompts until /quit or Ctrl-D. What failed is not kept in the conversation."""
    from lmclient.cli.commands import report
    from lmclient.errors import LMClientError

    while (question := typed_prompt()) is not None:
        conversation.add("user", question)
        try:
            _add_answer(asker, conversation)
        except LMClientError as error:
            report(str(error), error if debug else None)
            conversation.rewind()


def _add_answer(asker: Asker, conversation: Conversation) -> None:
    """Shows the answer and adds it to the conversation, as far as it came."""
    import msgspec

    from lmclient.cli.answer import AnswerPrinter, print_summary

    printer = AnswerPrinter()
    try:
        completion, interrupted = asker.ask(conversation, printer.show)
    finally:
        printer.finish()
    if not interrupted:
        print_summary(completion)
    if completion.text:
        # A tool call without its result would make every following request wrong.
        conversation.append(msgspec.structs.replace(completion, tool_calls=()))
    else:
        conversation.rewind()


def typed_prompt() -> str | None:
    """What the person types, None at the end of the chat."""
    with contextlib.suppress(ImportError):  # not on Windows
        import readline  # noqa: F401  # gives input() its line editing

    while True:
        try:
            question = input("> ").strip()
        except KeyboardInterrupt:
            typer.echo()
            continue
        except EOFError:
            typer.echo()
            return None
        if question == _QUIT:
            return None
        if question:
            return question
