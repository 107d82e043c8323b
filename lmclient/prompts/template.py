"""Prompt formats made of Hugging Face chat templates.

The template comes from a file, or from a llama.cpp server that reports its model's own at /props.
Stop strings, control tokens and reasoning markers are read off its text.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from lmclient.core.conversation import Conversation, ConversationLike, Role, Turn
from lmclient.core.messages import to_message
from lmclient.core.tools import Tool
from lmclient.errors import BadRequestError, ConfigurationError
from lmclient.prompts.builtin import FORMATS
from lmclient.prompts.format import Options, PromptFormat, Said, only_text
from lmclient.prompts.harmony import HarmonyParser
from lmclient.prompts.reasoning import AnswerParser
from lmclient.prompts.sandbox import LOOP_LIMIT, TURNS_LEFT, ChatEnvironment, clock
from lmclient.prompts.special_tokens import Treatment, token_pattern, treat

_REASONING = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel>thought", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<seed:think>", "</seed:think>"),
)
_HARMONY = ("<|channel|>", "<|message|>", "analysis")
_HARMONY_STOP = ("<|return|>", "<|call|>")
_TOKEN_SHAPES = (r"<\|[^\s<>|]{1,40}\|?>", r"<[^\s<>|]{1,40}\|>", r"<｜[^<>｜]{1,40}｜>")
"""Control tokens of almost every model have these shapes; a text may forge more than the template uses."""


def from_template(
    source: str | Path, bos_token: str = "", eos_token: str = "", *, name: str | None = None
) -> TemplateFormat:
    """The prompt format of a chat template: its text, or the `Path` of a file with it.

    `bos_token` and `eos_token` are what the template's variables of that name hold; the latter
    also ends an answer. Raises `ConfigurationError` if the file cannot be read, `BadRequestError`
    if the template is not valid.
    """
    if isinstance(source, Path):
        try:
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"The chat template {source} cannot be read: {error}.") from error
        return _format(text, bos_token, eos_token, name or str(source))
    return _format(source, bos_token, eos_token, name or "template")


@functools.lru_cache(maxsize=32)
def _format(text: str, bos_token: str, eos_token: str, name: str) -> TemplateFormat:
    try:
        compiled = _environment().from_string(text)
    except jinja2.TemplateError as error:
        raise BadRequestError(f"The chat template {name!r} is not valid: {_line(error)}") from error
    harmony = all(mark in text for mark in _HARMONY)
    stop = _HARMONY_STOP if harmony else _stops(text, eos_token)
    known = {token for format in FORMATS for token in format.special_tokens if token in text}
    shaped = {match[0] for shape in _TOKEN_SHAPES for match in re.finditer(shape, text)}
    return TemplateFormat(
        name=name,
        write=_not_used,
        template=compiled,
        eos=eos_token,
        bos=bos_token,
        stop=stop,
        special_tokens=tuple(sorted({bos_token, eos_token, *known, *shaped} - {""})),
        reasoning_markers=next((pair for pair in _REASONING if pair[1] in text), None),
        answer_parser=_harmony_parser if harmony else None,
    )


@functools.cache
def _environment() -> ChatEnvironment:
    return ChatEnvironment()


def _stops(text: str, eos_token: str) -> tuple[str, ...]:
    known = (stop for format in FORMATS for stop in format.stop if stop in format.special_tokens)
    found = [stop for stop in known if stop in text and stop not in _HARMONY_STOP]
    return tuple(dict.fromkeys([eos_token, *found] if eos_token else found))


def _harmony_parser(prompt_end: str) -> AnswerParser:
    return HarmonyParser(_HARMONY_STOP, prompt_end=prompt_end)


def _not_used(said: list[Said], options: Options) -> str:
    raise NotImplementedError("a template renders the turns themselves")


@dataclass(frozen=True, kw_only=True)
class TemplateFormat(PromptFormat):
    """A prompt format that renders a chat template. Made by `from_template`."""

    template: jinja2.Template
    eos: str = ""

    def render(
        self,
        conversation: ConversationLike,
        *,
        thinking: bool | None = None,
        today: datetime.date | None = None,
        special_tokens: Treatment = "escape",
        reasoning_effort: str | None = None,
        date_string: str | None = None,
        tools: Sequence[Tool] = (),
    ) -> str:
        """The prompt that the template makes, open for the answer.

        `thinking` is the template's `enable_thinking` (and `thinking`); what is None is not
        defined for the template. In answers of the past the reasoning markers are left as they
        are, so that the template finds them. Raises `BadRequestError` with the template's own
        words if it refuses the conversation, or fails.
        """
        turns = Conversation.of(conversation).turns
        safe = [self._safe(number, turn, special_tokens) for number, turn in enumerate(turns)]
        variables: dict[str, Any] = {
            "tools": [_tool(tool) for tool in tools] or None,
            "add_generation_prompt": True,
            "bos_token": self.bos,
            "eos_token": self.eos,
            "strftime_now": clock(today),
        }
        chosen = {
            "enable_thinking": thinking,
            "thinking": thinking,
            "reasoning_effort": reasoning_effort,
            "date_string": date_string,
        }
        variables |= {key: value for key, value in chosen.items() if value is not None}
        try:
            return self._run(variables, [_message(turn) for turn in safe])
        except BadRequestError:
            if not any(turn.tool_calls for turn in safe):
                raise
            # Templates expect the arguments of a call as an object, but some join them to strings.
            return self._run(variables, [to_message(turn) for turn in safe])

    def parser(self, *, prompt_end: str = "") -> AnswerParser:
        """As for every format; without `prompt_end`, the template is tried on a short conversation."""
        if not prompt_end and self.reasoning_markers and self.answer_parser is None:
            prompt_end = self._usual_end
        return super().parser(prompt_end=prompt_end)

    @functools.cached_property
    def _usual_end(self) -> str:
        return self.render("Hello")

    def _run(self, variables: dict[str, Any], messages: list[dict[str, Any]]) -> str:
        try:
            return self.template.render(variables, messages=messages, **{TURNS_LEFT: [LOOP_LIMIT]})
        except Exception as error:
            # A template is a program from outside: any error of Python may come out of it.
            raise BadRequestError(
                f"The chat template {self.name!r} refuses the conversation: {_line(error)}"
            ) from error

    @functools.cached_property
    def _tokens(self) -> re.Pattern[str] | None:
        return token_pattern(self.special_tokens, *_TOKEN_SHAPES)

    @functools.cached_property
    def _tokens_in_answers(self) -> re.Pattern[str] | None:
        marks = "".join(self.reasoning_markers or ())
        spared = [token for token in self.special_tokens if token in marks]
        lookahead = "|".join(map(re.escape, spared))
        shapes = [f"(?!{lookahead}){shape}" if spared else shape for shape in _TOKEN_SHAPES]
        return token_pattern((token for token in self.special_tokens if token not in marks), *shapes)

    def _safe(self, number: int, turn: Turn, treatment: Treatment) -> Turn:
        where = f"Turn {number} ({turn.role.value})"
        pattern = self._tokens_in_answers if turn.role is Role.ASSISTANT else self._tokens
        return Turn(
            turn.role,
            treat(only_text(turn, where), pattern, treatment, where),
            reasoning=treat(turn.reasoning, pattern, treatment, where),
            tool_calls=turn.tool_calls,
            tool_call_id=turn.tool_call_id,
            name=turn.name,
        )


def _message(turn: Turn) -> dict[str, Any]:
    message = to_message(turn)
    message["content"] = turn.content
    if turn.role is Role.TOOL and turn.name is not None:
        message["name"] = turn.name
    for call, written in zip(turn.tool_calls, message.get("tool_calls", ()), strict=True):
        written["function"]["arguments"] = call.arguments or {}
    return message


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def _line(error: Exception) -> str:
    message = " ".join(str(error).split()) or type(error).__name__
    return message if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: {message}"
