"""Fits a request into its profile's `max_context_length` before it is sent.

Prompt and `max_tokens` together have to fit. If they do not, `on_overflow = "drop-oldest"` drops whole
rounds, the oldest first, until they do: a round is a user turn and all that follows it up to the next
one, so no tool result is parted from its call. System turns and the last round always stay. What then
does not fit is given a smaller `max_tokens`, if at least a quarter of it has room, or is refused. The
completion's metadata tells: `dropped_turns`, and the `max_tokens` in force. `max_tokens` of 0, or none,
is the server's own limit; then only the prompt has to fit.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation, Role
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import ContextOverflowError
from lmclient.providers.base import Provider
from lmclient.providers.clock import in_time
from lmclient.providers.finishing import max_tokens_of

WORTHWHILE = 4
"""An answer gets less than it asked for, but not less than this part of it."""
FRAME = 64
"""More tokens than any template and provider puts around one turn, or one tool call."""
UNSEEN = 1024
"""More tokens than templates say by themselves, such as a default system turn."""
IMAGE = 1024
"""More tokens than an image is counted as."""


def open_fitting(provider: Provider, request: CompletionRequest) -> Awaitable[AsyncCompletionStream]:
    """`provider.open` for the request, or for what of it fits.

    Costs next to nothing unless the request comes near the limit. Raises `ContextOverflowError` if it
    does not fit.
    """
    limit = request.profile.max_context_length
    if limit is None or at_most(request) + max_tokens_of(request) <= limit:
        return provider.open(request)
    return _open_counted(provider, request, limit)


def at_most(request: CompletionRequest) -> int:
    """A number that the input tokens cannot exceed, found without counting.

    Tokens of byte-level BPE, and of SentencePiece with byte fallback, hold at least one byte of UTF-8.
    """
    size = UNSEEN
    for turn in request.conversation.turns:
        size += FRAME + _bytes(turn.text) + _bytes(turn.reasoning)
        if type(turn.content) is not str:
            size += IMAGE * len(turn.content)
        for call in turn.tool_calls:
            size += FRAME + 2 * len(msgspec.json.encode(call.arguments))
    if request.profile.prompt_format:
        size *= 2  # escaping a control token at most doubles it
    for tool in request.options.tools:
        # Doubled for templates that indent the schema.
        size += 2 * len(msgspec.json.encode((tool.name, tool.description, tool.parameters))) + FRAME
    return size


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


async def _open_counted(provider: Provider, request: CompletionRequest, limit: int) -> AsyncCompletionStream:
    fitted, notes = await in_time(request, fit(provider, request, limit))
    stream = await provider.open(fitted)
    if notes:

        async def note(completion: Completion, error: BaseException | None) -> Completion:
            return msgspec.structs.replace(completion, metadata={**completion.metadata, **notes})

        stream.on_end(note)
    return stream


async def fit(
    provider: Provider, request: CompletionRequest, limit: int
) -> tuple[CompletionRequest, dict[str, Any]]:
    """The request as it fits into `limit` tokens, and what the metadata says about the changes."""
    from lmclient.providers.counting import count_request

    wanted = max_tokens_of(request)
    tokens = await count_request(provider, request)
    notes: dict[str, Any] = {}
    if tokens + wanted > limit and request.profile.on_overflow == "drop-oldest":
        turns = len(request.conversation.turns)
        request, tokens = await _without_oldest(provider, request, tokens, limit - wanted)
        if dropped := turns - len(request.conversation.turns):
            notes["dropped_turns"] = dropped
    if tokens + wanted <= limit:
        return request, notes
    room = limit - tokens
    if room <= 0 or room * WORTHWHILE < wanted:
        raise _overflow(request, tokens, wanted, limit)
    notes["max_tokens"] = room
    options = msgspec.structs.replace(request.options, max_tokens=room)
    return msgspec.structs.replace(request, options=options), notes


async def _without_oldest(
    provider: Provider, request: CompletionRequest, tokens: int, limit: int
) -> tuple[CompletionRequest, int]:
    """The request without as few of its oldest rounds as it takes to fit, and its tokens.

    Without all but the last round if even that does not fit. Found by halving: counting may ask a server.
    """
    from lmclient.providers.counting import count_request

    turns = request.conversation.turns
    starts = [number for number, turn in enumerate(turns) if turn.role is Role.USER]
    fewest, most = 1, len(starts) - 1
    if most < fewest:
        return request, tokens
    best = _from(request, starts[most])
    tokens = await count_request(provider, best)
    while fewest < most and tokens <= limit:
        middle = (fewest + most) // 2
        longer = _from(request, starts[middle])
        count = await count_request(provider, longer)
        if count <= limit:
            best, tokens, most = longer, count, middle
        else:
            fewest = middle + 1
    return best, tokens


def _from(request: CompletionRequest, start: int) -> CompletionRequest:
    """The request without the turns before `start`, but with the system turns among them."""
    conversation = request.conversation
    kept = [
        turn for number, turn in enumerate(conversation.turns) if number >= start or turn.role is Role.SYSTEM
    ]
    return msgspec.structs.replace(request, conversation=Conversation(kept, conversation.metadata))


def _overflow(request: CompletionRequest, tokens: int, wanted: int, limit: int) -> ContextOverflowError:
    profile = request.profile
    answer = f" and max_tokens {wanted}" if wanted else ""
    hint = "" if profile.on_overflow == "drop-oldest" else ', set on_overflow = "drop-oldest"'
    return ContextOverflowError(
        f"Profile {profile.name!r}: the prompt of {tokens} tokens{answer} exceeds max_context_length "
        f"{limit}; shorten the conversation{hint} or use a model with a longer context.",
        input_tokens=tokens,
        max_tokens=wanted,
        limit=limit,
    )
