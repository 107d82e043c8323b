"""What a request to one of the APIs asks for, in lmclient's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lmclient.client import CallOptions
from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation
from lmclient.errors import BadRequestError
from lmclient.ui.events import EventWriter

MAX_TAGS = 16
MAX_TAG_NAME = 64
MAX_TAG_VALUE = 512


class Call(msgspec.Struct, kw_only=True):
    """One call of a model, and how its API says the answer.

    `model` is the name in the request: a category or a profile. `writer` makes the events of a
    streamed answer, `answer` the body of a whole one. A `raw_prompt` is sent to text completion as it
    is, without the profile's prompt format.
    """

    model: str
    conversation: Conversation
    options: CallOptions
    stream: bool
    writer: Callable[[], EventWriter]
    answer: Callable[[Completion], dict[str, Any]]
    raw_prompt: bool = False


ParseCall = Callable[[bytes], Call]
"""One API: reads the body of its requests. Raises `BadRequestError`."""


def tags_of(metadata: Mapping[str, str] | None, user: str | None) -> dict[str, str]:
    """The tags that a request brings: its `metadata`, and its `user` under that name.

    Raises `BadRequestError` beyond the bounds that OpenAI has for metadata.
    """
    tags = dict(metadata or {})
    if len(tags) > MAX_TAGS:
        raise BadRequestError(f"metadata has {len(tags)} entries; at most {MAX_TAGS} are allowed.")
    if user:
        tags["user"] = user
    for name, value in tags.items():
        if not name or len(name) > MAX_TAG_NAME or len(value) > MAX_TAG_VALUE:
            raise BadRequestError(
                f"metadata: {name[:MAX_TAG_NAME]!r} is too long; names have 1 to {MAX_TAG_NAME} "
                f"characters, values at most {MAX_TAG_VALUE}."
            )
    return tags
