"""Prompt formats for text completion, and the parsers of the answers.

from lmclient import prompts

format = prompts.get("qwen3")
prompt = format.render(conversation)
format.parse(raw).reasoning
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmclient.prompts.format import Options, PromptFormat, Said
from lmclient.prompts.reasoning import AnswerParser, tag_splitter
from lmclient.prompts.registry import get, names, register_prompt_format
from lmclient.prompts.stops import StopCutter

if TYPE_CHECKING:
    from lmclient.prompts.template import from_template

__all__ = [
    "AnswerParser",
    "Options",
    "PromptFormat",
    "Said",
    "StopCutter",
    "from_template",
    "get",
    "names",
    "register_prompt_format",
    "tag_splitter",
]


def __getattr__(name: str) -> object:
    # jinja2 is loaded only where a template is used.
    if name == "from_template":
        from lmclient.prompts.template import from_template

        return from_template
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
