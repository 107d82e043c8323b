"""An answer as the cache keeps it: which ones are kept, their key, their JSON, their replay."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any, Literal

import msgspec

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.request import CompletionRequest
from lmclient.core.tools import ToolCall
from lmclient.profiles.model import ModelProfile

SCHEMA: Literal[1] = 1
"""Of key and JSON together: raise it when either changes its meaning."""

ZERO = Decimal(0)


class Entry(msgspec.Struct, frozen=True):
    """What is kept of an answer. `until` is the Unix time at which it is too old."""

    schema: Literal[1]
    until: float
    completion: Completion


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Entry)


def key_of(fingerprint: str, profile: ModelProfile) -> str:
    """The key of an answer: a hash of the encoded request, how it is made to fit, how its answer is read."""
    reading = (profile.reasoning_tags, profile.prompt_format, profile.tokenizer, profile.token_encoding)
    fitting = (profile.special_tokens, profile.on_overflow, profile.max_context_length)
    headers = sorted((name.lower(), value) for name, value in profile.headers.public().items())  # type: ignore[attr-defined]  # a MaskedDict
    parts = _encoder.encode((fingerprint, reading, fitting, headers))
    return f"{SCHEMA}:{hashlib.sha256(parts).hexdigest()}"


def is_good(completion: Completion) -> bool:
    """Whether another caller should get this answer, too.

    That is one which the model finished itself, with text or with calls that can be run. Answers
    that a limit cut, a filter stopped, or that hold nothing are asked for again.
    """
    if completion.finish_reason not in (FinishReason.STOP, FinishReason.TOOL_CALLS) or completion.cached:
        return False
    if any(call.arguments is None for call in completion.tool_calls):
        return False
    return bool(completion.text or completion.tool_calls)


def encode(completion: Completion, until: float) -> bytes | None:
    """The JSON of an entry; None if the answer holds what JSON cannot carry."""
    try:
        return _encoder.encode(Entry(SCHEMA, until, completion))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None


def decode(data: bytes) -> Entry:
    """The entry in its JSON. Raises `ValueError` if that is not what the bytes hold."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error


def separate(completion: Completion) -> Completion:
    """The same answer, of which nothing that can be changed is shared with the other."""
    usage = completion.usage
    return msgspec.structs.replace(
        completion,
        tool_calls=completion.tool_calls and tuple([_separate_call(call) for call in completion.tool_calls]),
        usage=msgspec.structs.replace(usage, details=_copied(usage.details)),
        provider_items=completion.provider_items
        and tuple([_copied(item) for item in completion.provider_items]),
        metadata=_copied(completion.metadata),
    )


def _separate_call(call: ToolCall) -> ToolCall:
    return msgspec.structs.replace(call, arguments=_copied(call.arguments))


def _copied(value: Any) -> Any:
    """A copy of what came from JSON; `copy.deepcopy` takes far longer."""
    if type(value) is dict:
        return {name: _copied(inner) for name, inner in value.items()} if value else {}
    if type(value) is list:
        return [_copied(inner) for inner in value]
    return value


def replayed(completion: Completion, request: CompletionRequest, duration: float) -> Completion:
    """The kept answer as that of another call, which cost nothing and took `duration` seconds."""
    answer = separate(completion)
    if completion.cost is not None:
        answer.metadata["saved_cost"] = str(completion.cost)
    asked = {request.profile.name, *(profile.name for profile in request.fallbacks)}
    return msgspec.structs.replace(
        answer,
        cost=ZERO,
        cost_source="cache",
        profile=completion.profile if completion.profile in asked else request.profile.name,
        category=request.category,
        requests=0,
        duration=duration,
        time_to_first_token=duration if request.stream else None,
        cached=True,
    )
