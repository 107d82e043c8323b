"""The tokens of a request before it is sent: a cheap guess, and a number that they do not exceed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lmclient.core.conversation import Conversation, FilePart, ImagePart, Turn
from lmclient.core.request import Options
from lmclient.core.tools import Tool
from lmclient.tokens.fallback import FallbackTokenizer
from lmclient.tokens.messages import overhead, texts

WHOLE = 8192
"""Characters up to which a text is counted in whole; of a longer one samples are."""
_SAMPLE = 512
_count = FallbackTokenizer().count
_BYTES_PER_TOKEN = 8
"""Of a file, as a guess: documents take 6 to 50 bytes for each token, depending on the provider."""
_FILE = 1500
"""The guess for a file that is somewhere else."""

# More than was reported for any recorded request, see `most_tokens`.
MOST_OF_IMAGE = 5000
"""Tokens of an image of the highest resolution."""
MOST_OF_FILE = 32_768
"""Tokens that are assumed for a file of which only the place is known."""
_UNSEEN = 64
"""What templates and providers say by themselves."""
_UNSEEN_OF_TOOLS = 1024
"""The same where there are tools: at most 850."""
_UNSEEN_OF_FORMAT = 256
"""The same where there is a response format: at most 190."""
_FRAME = 8
"""Around one turn or one tool call."""


def estimate_tokens(conversation: Conversation, tools: Sequence[Tool] = ()) -> int:
    """The tokens of a conversation and its tools, as exact as the tokenizer "fallback" is.

    An image counts as one of 1024 x 1024 pixels, a file by its size. Takes at most a millisecond for
    each text, however long it is.
    """
    files = (part for part in _parts(conversation) if isinstance(part, FilePart))
    return (
        overhead(conversation)
        + sum(map(_estimate, texts(conversation, tools)))
        + sum(len(file.data) // _BYTES_PER_TOKEN if file.data else _FILE for file in files)
    )


def most_tokens(conversation: Conversation, options: Options) -> int:
    """A number that the prompt does not exceed with any tokenizer: its bytes, and what is put around it.

    No token of a byte-level tokenizer, or of one that falls back to bytes, is shorter than one byte. Text
    takes about a quarter of that in truth. Tools, the schema of the response format and the
    `extra_body` count as their JSON, a file as its bytes, and an image as one of the highest resolution.
    """
    most = _UNSEEN + sum(map(_most_of_turn, conversation.turns))
    if options.tools:
        tools = [(tool.name, tool.description, tool.parameters) for tool in options.tools]
        most += _UNSEEN_OF_TOOLS + json_bytes(tools)
    if options.response_format is not None:
        from lmclient.core.structured import json_schema

        most += _UNSEEN_OF_FORMAT + json_bytes(json_schema(options.response_format))
    return most


def json_bytes(value: Any) -> int:
    """The bytes of the value as JSON."""
    return _bytes(json.dumps(value, ensure_ascii=False, default=str))


def _estimate(text: str) -> int:
    if len(text) <= WHOLE:
        return _count(text)
    samples = WHOLE // _SAMPLE
    step = (len(text) - _SAMPLE) / (samples - 1)
    counted = sum(_count(text[int(n * step) : int(n * step) + _SAMPLE]) for n in range(samples))
    return round(counted * len(text) / WHOLE)


def _most_of_turn(turn: Turn) -> int:
    most = _FRAME + _bytes(turn.text) + _bytes(turn.reasoning) + _bytes(turn.name or "")
    for call in turn.tool_calls:
        most += _FRAME + _bytes(call.name) + max(_bytes(call.raw_arguments), json_bytes(call.arguments))
    if turn.provider_items:
        most += json_bytes(turn.provider_items)
    return most + sum(map(_most_of_part, () if isinstance(turn.content, str) else turn.content))


def _most_of_part(part: object) -> int:
    if isinstance(part, ImagePart):
        return MOST_OF_IMAGE
    if isinstance(part, FilePart):
        return len(part.data) if part.data else MOST_OF_FILE
    return 0


def _parts(conversation: Conversation) -> Iterator[object]:
    for turn in conversation.turns:
        if not isinstance(turn.content, str):
            yield from turn.content


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
