"""How many tokens a conversation costs as chat messages, its overhead included.

The rules are those that OpenAI documents for its chat models (cookbook, "How to count tokens with
tiktoken"): each message costs 3 tokens beside its role and content, a name 1 more, and the reply
is opened with 3. Tools are counted as the TypeScript declarations that these models see (described
in "OpenAI harmony response format", section "Function calling").

Against the usage that was reported for recorded requests:

- gpt-4o and gpt-4.1: exact for text alone (1 % on one long document), within 8 % with tools and
  tool rounds;
- reasoning models: o3 and gpt-5 report 1 token less, gpt-5 some 83 more as soon as there are tools;
- gpt-oss: some 60 more, its system header (exact when the rendered prompt is counted instead);
- Gemini: 6 less, as it has next to no frame; Mistral: 8 more, and 20 more with tools;
- Claude: 1 to 40 more, and 500 to 600 more with tools; Llama 4: 560 to 690 more with tools;
  DeepSeek: 300 to 500 more with tools. No rule is published for these.

`pick` says how well o200k_base fits the text itself of models of other vendors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from lmclient.core.conversation import Conversation, ImagePart, Role, Turn
from lmclient.core.tools import Tool
from lmclient.tokens.declarations import declarations
from lmclient.tokens.tokenizer import ServerTokenizer, Tokenizer

_PER_MESSAGE = 4  # 3, and the role, which is one token in every encoding
_PER_NAME = 1
_REPLY = 3
# Not documented; measured on recorded requests.
_PER_CALL = 7
_PER_PARALLEL_CALL = 8
# OpenAI, "Images and vision": 85 tokens at low detail, 765 for 1024 x 1024 pixels at high detail.
_IMAGE_LOW, _IMAGE = 85, 765


def count_messages(conversation: Conversation, tokenizer: Tokenizer, tools: Sequence[Tool] = ()) -> int:
    """The tokens of the conversation as a chat request with these tools.

    Reasoning counts in the turns after the last user turn only: templates drop older reasoning.
    An image counts as one of 1024 x 1024 pixels, a file as nothing: both depend on the provider.
    """
    return overhead(conversation) + sum(map(tokenizer.count, texts(conversation, tools)))


async def count_messages_on_server(
    conversation: Conversation, tokenizer: ServerTokenizer, tools: Sequence[Tool] = ()
) -> int:
    """`count_messages` with a tokenizer that asks a server, in one request."""
    return overhead(conversation) + await tokenizer.count("\n".join(texts(conversation, tools)))


def overhead(conversation: Conversation) -> int:
    """The tokens that stand for no text: message frames, names, tool-call frames, images."""
    return _REPLY + sum(map(_turn_overhead, conversation.turns))


def _turn_overhead(turn: Turn) -> int:
    calls = len(turn.tool_calls)
    tokens = _PER_MESSAGE + _PER_CALL * calls
    if calls > 1:
        tokens += _PER_PARALLEL_CALL * calls
    if turn.name is not None and turn.role is not Role.TOOL:
        tokens += _PER_NAME
    if not isinstance(turn.content, str):
        images = (part for part in turn.content if isinstance(part, ImagePart))
        tokens += sum(_IMAGE_LOW if image.detail == "low" else _IMAGE for image in images)
    return tokens


def texts(conversation: Conversation, tools: Sequence[Tool] = ()) -> Iterator[str]:
    """Every text of the request that is tokenized, in order."""
    if tools:
        yield declarations(tools)
    last_user = max((n for n, turn in enumerate(conversation.turns) if turn.role is Role.USER), default=-1)
    for number, turn in enumerate(conversation.turns):
        yield turn.text
        if turn.name is not None and turn.role is not Role.TOOL:
            yield turn.name
        if turn.reasoning and number > last_user:
            yield turn.reasoning
        for call in turn.tool_calls:
            yield call.name
            yield json.dumps(call.arguments or {}, ensure_ascii=False, separators=(",", ":"), default=str)
