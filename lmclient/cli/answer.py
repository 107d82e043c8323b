"""Showing one answer: on a terminal or in a pipe while it arrives, or as JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import msgspec
import typer

from lmclient.cli.terminal import SafeText, one_line
from lmclient.core.completion import Chunk, Completion, FinishReason

_JSON_FIELDS = (
    "text",
    "reasoning",
    "tool_calls",
    "finish_reason",
    "usage",
    "cost",
    "currency",
    "cost_source",
    "model",
    "profile",
    "category",
    "id",
    "requests",
    "duration",
    "time_to_first_token",
)


class AnswerPrinter:
    """Prints the chunks of one answer on stdout; its reasoning, dimmed, only where that is a terminal."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._text = SafeText()
        self._reasoning = SafeText()
        self._reasons = False
        self._at_line_start = True

    def show(self, chunk: Chunk) -> None:
        """Prints what arrived."""
        if chunk.reasoning and self._terminal:
            self._reasons = True
            self._write(self._reasoning.feed(chunk.reasoning), dim=True)
        if chunk.text:
            self._end_reasoning()
            self._write(self._text.feed(chunk.text))
        for call in chunk.tool_calls:
            typer.echo(one_line(f"The model calls {call.name}({call.raw_arguments})"), err=True)

    def finish(self) -> None:
        """Ends the answer, whole or not, with the end of its line."""
        self._end_reasoning()
        self._write(self._text.finish())
        if not self._at_line_start:
            self._write("\n")

    def _end_reasoning(self) -> None:
        if self._reasons:
            self._reasons = False
            self._write(self._reasoning.finish(), dim=True)
            self._write("\n" if self._at_line_start else "\n\n")

    def _write(self, text: str, dim: bool = False) -> None:
        if text:
            self._at_line_start = text.endswith("\n")
            typer.echo(_dimmed(text) if dim else text, nl=False)


def _dimmed(text: str) -> str:
    # https://no-color.org: any value but the empty one
    return text if os.environ.get("NO_COLOR") else typer.style(text, dim=True)


def print_json(completion: Completion) -> None:
    """Prints the completion as one JSON object, in ASCII so that every encoding carries it."""
    values: dict[str, Any] = msgspec.to_builtins(completion)
    typer.echo(json.dumps({name: values[name] for name in _JSON_FIELDS}))


def print_summary(completion: Completion) -> None:
    """Prints tokens, seconds and cost in one line on stderr, where a person sees it beside the answer."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        typer.echo(_dimmed(summary(completion)), err=True)


def summary(completion: Completion) -> str:
    """Tokens, seconds and cost of a completion in one line, and why it ended if not as usual."""
    usage = completion.usage
    about = "about " if usage.estimated else ""
    parts = [
        f"{about}{usage.input_tokens} tokens in, {usage.output_tokens} out",
        f"{completion.duration:.1f} s",
        "price unknown"
        if completion.cost is None
        else f"{completion.cost.normalize():f} {completion.currency}",
    ]
    if completion.finish_reason not in (FinishReason.STOP, FinishReason.UNKNOWN):
        parts.append(f"ended by {completion.finish_reason.value}")
    return " · ".join(parts)
