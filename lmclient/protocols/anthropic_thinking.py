"""From a reasoning effort to Anthropic's `thinking` and `output_config.effort`.

https://docs.anthropic.com/en/docs/build-with-claude/adaptive-thinking and `…/effort`: models up to
Claude 4.5 think within a budget of tokens, later ones decide themselves, guided by an effort.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from lmclient.core.request import CompletionRequest
from lmclient.errors import UnsupportedOptionError
from lmclient.protocols.base import as_dict

Json = dict[str, Any]

BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 20480, "max": 23552}
"""Tokens of thinking by effort: the budget of models that take one, an allowance for the others."""

MIN_BUDGET = 1024
"""The least that the API accepts."""

_BUDGET_MODELS = re.compile(r"claude-(\d|(opus|sonnet|haiku)-4(-[0-5])?(-\d{8})?(@\d{8}|-latest)?$)")
_THINKING = ("thinking", "redacted_thinking")


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """What a call says about thinking.

    `field` is its `thinking` (None leaves it out), `effort` its `output_config.effort`, `on` whether
    the model may think, and `allowance` the tokens that thinking is expected to take.
    """

    field: Json | None = None
    effort: str = ""
    on: bool = False
    allowance: int = 0


def encode_thinking(
    request: CompletionRequest, messages: list[Json], max_tokens: int, extra: Json
) -> Thinking:
    """What the effort of the call or its profile means for this model; `max_tokens` 0 is no limit.

    Thinking is left out where the API refuses it: while a tool is forced, and within a budget in a
    round of tools that began without it. An `extra_body` with `thinking` wins. Raises
    `UnsupportedOptionError` for an effort that the model has no budget for.
    """
    profile, options = request.profile, request.options
    effort = (options.reasoning_effort or profile.reasoning_effort or "").lower()
    if "thinking" in extra:
        kind = as_dict(extra["thinking"]).get("type")
        return Thinking(on=kind in ("enabled", "adaptive"), allowance=BUDGETS.get(effort, 0))
    if not effort:
        return Thinking()
    if effort == "none":
        return Thinking(field={"type": "disabled"})
    forced = bool(options.tools) and options.tool_choice not in ("auto", "none")
    allowance = BUDGETS.get(effort, BUDGETS["high"])
    if not _BUDGET_MODELS.match(profile.model):
        effort = "low" if effort == "minimal" else effort
        if forced:
            return Thinking(effort=effort)
        field = _shown({"type": "adaptive"}, profile.reasoning_summary)
        return Thinking(field=field, effort=effort, on=True, allowance=allowance)
    if forced or _began_without_thinking(messages):
        return Thinking()
    budget = _budget(effort, max_tokens, profile.name)
    field = _shown({"type": "enabled", "budget_tokens": budget}, profile.reasoning_summary)
    return Thinking(field=field, on=True, allowance=allowance)


def _shown(field: Json, summary: str | None) -> Json:
    """The field with what shall be seen of the thinking; without a wish the model's default holds."""
    if summary:
        field["display"] = "omitted" if summary in ("none", "omitted") else "summarized"
    return field


def _budget(effort: str, max_tokens: int, profile: str) -> int:
    """The budget for an effort, which leaves at least half of `max_tokens` to the answer if it can."""
    if effort not in BUDGETS:
        raise UnsupportedOptionError(
            f"Profile {profile!r}: reasoning_effort is {effort!r}; expected none, {', '.join(BUDGETS)}."
        )
    if not max_tokens:
        return BUDGETS[effort]
    if max_tokens <= MIN_BUDGET:
        raise UnsupportedOptionError(
            f"Profile {profile!r}: this model thinks with at least {MIN_BUDGET} tokens, and max_tokens is "
            f'{max_tokens}; allow more, or set reasoning_effort to "none".'
        )
    return min(BUDGETS[effort], max(MIN_BUDGET, max_tokens // 2))


def _began_without_thinking(messages: list[Json]) -> bool:
    """Whether the messages end in a round of tools whose first answer has no thinking.

    So it is if another provider began it, or if the signature of its thinking was lost.
    """
    first: Json | None = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first = message
        elif not _is_tool_result(message):
            break
    if first is None or not _is_tool_result(messages[-1]):
        return False
    content = first["content"]
    return isinstance(content, str) or content[0].get("type") not in _THINKING


def _is_tool_result(message: Json) -> bool:
    content = message["content"]
    return isinstance(content, list) and content[0].get("type") == "tool_result"
