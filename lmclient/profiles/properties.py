"""Profiles of lm-lib: Java properties files with its key names.

The syntax is that of `java.util.Properties.load(Reader)`: keys end at `=`, `:` or white space, lines
beginning with `#` or `!` are comments, a line ending in an odd number of backslashes continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lmclient.profiles.category import Category

KEYS = {
    "prompts": "prompt_format",
    "tokenizer": "tokenizer",
    "tokenEncoding": "token_encoding",
    "maxTokens": "max_tokens",
    "maxContextLength": "max_context_length",
    "temperature": "temperature",
    "topP": "top_p",
    "modelProvider": "provider",
    "modelName": "model",
    "url": "url",
    "apiKey": "api_key",
    "cost1MInTokens": "cost.input",
    "cost1MCachedInTokens": "cost.cached_input",
    "cost1MOutTokens": "cost.output",
    "cost1MReasoningOutTokens": "cost.reasoning",
    "reasoningEffort": "reasoning_effort",
    "reasoningSummaryDetails": "reasoning_summary",
    "category": "category",
}
"""lm-lib's property names and the keys of a profile that they set."""

_VALUES = {
    "tokenizer": {"jTokkit": "tiktoken", "llamaServer": "llama-server"},
    "tokenEncoding": {"none": ""},
    "modelProvider": {
        "OAI_CHAT_COMPLETION": "openai-chat",
        "OAI_TEXT_COMPLETION": "openai-text",
        "OAI_RESPONSES": "openai-responses",
        "AZURE_AI": "azure-ai",
        "OPENROUTER": "openrouter",
        "OLLAMA": "ollama",
    },
    "category": {category.value.upper(): category.value for category in Category},
}
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(u)|(.)|$)", re.DOTALL)
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def profile_values(text: str) -> dict[str, Any]:
    """The values of a profile, under the keys of a TOML profile; unknown names stay as they are.

    Raises `ValueError` for a malformed unicode escape.
    """
    values: dict[str, Any] = {}
    for name, raw in parse(text).items():
        value = raw.strip()
        table, _, key = KEYS.get(name, name).rpartition(".")
        # An unknown name may contain dots; only those of the table above are tables.
        if table and name in KEYS:
            values.setdefault(table, {})[key] = value
        else:
            values[KEYS.get(name, name)] = _VALUES.get(name, {}).get(value, value)
    return values


def property_name(key: str) -> str:
    """The lm-lib name of a profile's key, or the key itself where lm-lib has none."""
    return next((name for name, target in KEYS.items() if target == key), key)


def parse(text: str) -> dict[str, str]:
    """The properties in `text`, the last of equal names winning."""
    properties = {}
    for line in _logical_lines(text):
        match = _ENTRY.fullmatch(line)
        assert match is not None, "the pattern matches any line"
        properties[_unescape(match[1])] = _unescape(match[2])
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        code, malformed, other = match.groups()
        if malformed:
            raise ValueError("a unicode escape needs four hexadecimal digits")
        if code:
            return chr(int(code, 16))
        return _CONTROL.get(other, other or "")

    # Java writes characters beyond the first plane as two escapes, a surrogate pair.
    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
