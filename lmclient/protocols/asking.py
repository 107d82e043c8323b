"""How an answer in a `response_format` is asked for: by its schema, or in words where none is taken."""

from __future__ import annotations

import re

from lmclient.core.conversation import Conversation
from lmclient.core.request import CompletionRequest
from lmclient.protocols.dialect import Dialect


def takes_schema(request: CompletionRequest, dialect: Dialect) -> bool:
    """Whether the vendor, and the model of the request, understand a JSON schema."""
    schemaless = dialect.schemaless_models
    return dialect.json_schema and not (schemaless and re.match(schemaless, request.profile.model))


def conversation_of(request: CompletionRequest, dialect: Dialect) -> Conversation:
    """The conversation to send, with the schema in it where it has no other place."""
    wanted = request.options.response_format
    if wanted is None or takes_schema(request, dialect):
        return request.conversation
    from lmclient.core.structured import with_instruction

    return with_instruction(request.conversation, wanted)
