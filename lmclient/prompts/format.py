"""What a prompt format is: declared facts, a writer of prompts, and a parser of answers."""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from lmclient.core.completion import Chunk
from lmclient.core.conversation import Conversation, ConversationLike, Role, TextPart, Turn
from lmclient.errors import BadRequestError
from lmclient.prompts.reasoning import AnswerParser, PlainParser, TagParser
from lmclient.prompts.special_tokens import Treatment, token_pattern, treat


class Said(NamedTuple):
    """A turn as a writer gets it: control tokens are dealt with, raw reasoning is taken out of the text."""

    role: str
    text: str
    reasoning: str


class Options(NamedTuple):
    """What a caller may choose; None is the default of the official template."""

    thinking: bool | None
    today: datetime.date
    reasoning_effort: str | None
    date_string: str | None


Writer = Callable[[list[Said], Options], str]
History = Callable[[str, str], tuple[str, str]]
"""From the text and the reasoning of a past answer to those that the template sees."""


def as_it_is(text: str, reasoning: str) -> tuple[str, str]:
    """The history of formats that do not look for raw reasoning in past answers."""
    return text, reasoning


@dataclass(frozen=True, kw_only=True)
class PromptFormat:
    """How a model wants its prompts, and how it marks its answers.

    `bos` is "" where the official template writes none; else prompts start with it, and a server
    that adds BOS itself needs them without. `stop` are the strings that end an answer.
    `special_tokens` are those that the tokenizer reads as control tokens, `turn_markers` the
    plain-text markers of formats without such tokens. `reasoning_markers` open and close the
    reasoning in the raw answer; `opens_reasoning` says that the default prompt ends inside it.
    `write` makes the prompt of turns whose texts are safe; `history` runs before they are made safe.
    """

    name: str
    write: Writer
    stop: tuple[str, ...] = ()
    bos: str = ""
    special_tokens: tuple[str, ...] = ()
    turn_markers: tuple[str, ...] = ()
    reasoning_markers: tuple[str, str] | None = None
    opens_reasoning: bool = False
    alternating: bool = False
    system_first_only: bool = False
    history: History = as_it_is
    answer_parser: Callable[[str], AnswerParser] | None = None

    def render(
        self,
        conversation: ConversationLike,
        *,
        thinking: bool | None = None,
        today: datetime.date | None = None,
        special_tokens: Treatment = "escape",
        reasoning_effort: str | None = None,
        date_string: str | None = None,
    ) -> str:
        """The prompt, with BOS where the official template writes it, open for the answer.

        `thinking` chooses the official variant where the format has one. `today`, by default the
        current day, and `reasoning_effort` stand in prompts of gpt-oss, `date_string` replaces the
        fixed day of llama3.1. Formats that have no such thing ignore them. `special_tokens` says
        what becomes of control tokens in the texts: see `lmclient.prompts.special_tokens`.

        Raises `BadRequestError` for roles or parts that the format cannot carry.
        """
        turns = Conversation.of(conversation).turns
        said = [self._said(number, turn, special_tokens) for number, turn in enumerate(turns)]
        self._check_order(said)
        return self.write(
            said, Options(thinking, today or datetime.date.today(), reasoning_effort, date_string)
        )

    def parser(self, *, prompt_end: str = "") -> AnswerParser:
        """A parser for one answer.

        `prompt_end` is the end of the prompt that was sent, which may have opened the reasoning;
        without it the default prompt of the format is assumed.
        """
        if self.answer_parser is not None:
            return self.answer_parser(prompt_end)
        if self.reasoning_markers is None:
            return PlainParser(self.stop)
        opening, closing = self.reasoning_markers
        # Only the very end counts: a marker further up may be the text of a user.
        inside = prompt_end.rstrip().endswith(opening) if prompt_end else self.opens_reasoning
        return TagParser(opening, closing, inside=inside, stops=self.stop)

    def parse(self, raw: str, *, prompt_end: str = "") -> Chunk:
        """The text and reasoning of a whole raw answer. `prompt_end` is as for `parser`."""
        parser = self.parser(prompt_end=prompt_end)
        first, last = parser.feed(raw), parser.finish()
        return Chunk(
            first.text + last.text, first.reasoning + last.reasoning, first.tool_calls + last.tool_calls
        )

    @functools.cached_property
    def _tokens(self) -> re.Pattern[str] | None:
        return token_pattern((*self.special_tokens, *self.turn_markers))

    def _said(self, number: int, turn: Turn, treatment: Treatment) -> Said:
        where = f"Turn {number} ({turn.role.value})"
        if turn.role is Role.TOOL or turn.tool_calls:
            raise BadRequestError(
                f"{where}: prompt format {self.name!r} has no tool calls; "
                "use a chat provider, or the model's own template as prompt format."
            )
        text, reasoning = only_text(turn, where), turn.reasoning
        if turn.role is Role.ASSISTANT:
            # Before control tokens are broken up: the markers of raw reasoning may be such tokens,
            # and what is left when it is gone may make a new one.
            text, reasoning = self.history(text, reasoning)
            reasoning = treat(reasoning, self._tokens, treatment, where)
        return Said(turn.role.value, treat(text, self._tokens, treatment, where), reasoning)

    def _check_order(self, said: list[Said]) -> None:
        rest = said[1:] if said[0].role == "system" else said
        offset = len(said) - len(rest)
        if self.system_first_only or self.alternating:
            for number, turn in enumerate(rest, offset):
                if turn.role == "system":
                    raise BadRequestError(
                        f"Turn {number} (system): prompt format {self.name!r} takes a system turn "
                        'only at the beginning; move its text there, or set roles = "alternating".'
                    )
        if not self.alternating:
            return
        if not rest:
            raise BadRequestError(
                f"Prompt format {self.name!r} has no place for a system turn alone; add a user turn."
            )
        for number, turn in enumerate(rest):
            expected = "assistant" if number % 2 else "user"
            if turn.role != expected:
                raise BadRequestError(
                    f"Turn {number + offset} ({turn.role}): prompt format {self.name!r} needs user and "
                    f"assistant turns in alternation, user first, so {expected} is expected here; "
                    'join neighbouring turns of one role, or set roles = "alternating".'
                )


def only_text(turn: Turn, where: str) -> str:
    """The turn's text. Raises `BadRequestError` if it has other parts, which no prompt can carry."""
    content = turn.content
    if isinstance(content, str):
        return content
    for part in content:
        if not isinstance(part, TextPart):
            raise BadRequestError(
                f"{where} has an {type(part).__name__}; text completion carries text only, "
                "use a chat provider."
            )
    return turn.text
