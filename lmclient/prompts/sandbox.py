"""Jinja as chat templates expect it, in a sandbox.

The environment has what Hugging Face's documentation of chat templates promises
(https://huggingface.co/docs/transformers/chat_templating): trimmed blocks, `break` and `continue`,
`raise_exception`, `strftime_now`, `tojson` that does not escape HTML, and the `generation` tag.

A template comes from outside. What it cannot do: reach attributes that begin with an underscore or
other Python internals, change the values it is given, load other templates, go round loops more
than `LOOP_LIMIT` times in one rendering, recurse deeper than Python allows, or make a string or
list longer than `SIZE_LIMIT` by `*` and a number larger than that by `**`. Its memory is not
bounded otherwise.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

LOOP_LIMIT = 1_000_000
SIZE_LIMIT = 10_000_000
TURNS_LEFT = "_loop_turns_left"


class GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}` marks what the model wrote; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - the attribute that jinja2 declares

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The content of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """The environment of chat templates, with bounded loops."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols])
        self.filters["tojson"] = _tojson
        self.filters["_counted"] = _counted
        self.globals["raise_exception"] = _raise_exception

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        for loop in list(template.find_all(nodes.For)):
            loop.iter = nodes.Filter(loop.iter, "_counted", [], [], None, None, lineno=loop.lineno)
        return template

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The product or power, if it is not excessive."""
        if operator == "*":
            for factor, other in ((left, right), (right, left)):
                if isinstance(factor, str | list | tuple) and isinstance(other, int):
                    _check_size(len(factor) * other)
        elif isinstance(left, int) and isinstance(right, int):
            _check_size(left.bit_length() * right)
        return super().call_binop(context, operator, left, right)


def clock(today: datetime.date | None) -> Any:
    """`strftime_now` for a day, by default for now."""

    def strftime_now(format: str) -> str:
        return (today or datetime.datetime.now()).strftime(format)

    return strftime_now


def _check_size(size: int) -> None:
    if size > SIZE_LIMIT:
        raise SecurityError(f"a value of size {size} is more than the {SIZE_LIMIT} allowed")


@jinja2.pass_context
def _counted(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    left = context[TURNS_LEFT]
    for item in items:
        left[0] -= 1
        if left[0] < 0:
            raise SecurityError(f"the template goes round its loops more than {LOOP_LIMIT} times")
        yield item


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
