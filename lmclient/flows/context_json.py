"""A context as JSON text, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation
from lmclient.errors import FlowError, LMClientError
from lmclient.flows.agent import Agent
from lmclient.flows.context import AgentContext, ErrorType, SkipCompletion
from lmclient.flows.statistics import FlowStatistics
from lmclient.flows.trace import TraceStep


class _Saved(msgspec.Struct, kw_only=True):
    values: dict[str, list[Any]]
    single: list[str]
    conversation: Conversation | None
    statistics: FlowStatistics
    graph: list[str]
    trace: list[TraceStep]
    last_completion: Completion | None
    error_type: ErrorType | None
    error: str | None
    streaming: bool
    skip_next_completion: SkipCompletion
    skip_cache: bool
    always_skip_cache: bool
    answer_pending: bool
    parents: tuple[int, ...]


def encode(context: AgentContext) -> str:
    """See `AgentContext.to_json`."""
    values = {}
    for key in context:
        try:
            values[key] = [_plain(value) for value in context.get_all(key)]
        except (
            TypeError,
            UnicodeEncodeError,
            OverflowError,
        ):  # JSON cannot carry it, so it is left out, as `to_json` says
            continue
    saved = _Saved(
        values=values,
        single=[key for key in values if context.is_single(key)],
        conversation=context.conversation,
        statistics=context.statistics,
        graph=context.graph,
        trace=context.trace,
        last_completion=context.last_completion,
        error_type=context.error_type,
        error=None if context.error is None else str(context.error),
        streaming=context.streaming,
        skip_next_completion=context.skip_next_completion,
        skip_cache=context.skip_cache,
        always_skip_cache=context.always_skip_cache,
        answer_pending=context.answer_pending,
        parents=context.parents,
    )
    return msgspec.json.encode(saved, enc_hook=_shown).decode()


def decode(text: str | bytes, agents: Iterable[Agent]) -> AgentContext:
    """See `AgentContext.from_json`."""
    try:
        saved = msgspec.json.decode(text, type=_Saved)
    except (msgspec.DecodeError, UnicodeError, LMClientError) as error:
        raise FlowError(f"This is not the JSON of a context: {error}.") from error
    context = AgentContext(agents)
    for key, values in saved.values.items():
        context.set_all(key, values)
    for key in saved.single:
        context.set(key, context.get(key))
    context.conversation = saved.conversation
    context.statistics = saved.statistics
    context.statistics.in_flight = 0
    context.graph = saved.graph
    context.trace = saved.trace
    context.last_completion = saved.last_completion
    context.error_type = saved.error_type
    context.error = None if saved.error is None else FlowError(saved.error)
    context.streaming = saved.streaming
    context.skip_next_completion = saved.skip_next_completion
    context.skip_cache = saved.skip_cache
    context.always_skip_cache = saved.always_skip_cache
    context.answer_pending = saved.answer_pending
    context.parents = saved.parents
    return context


def _plain(value: Any) -> Any:
    """The value as JSON can carry it.

    Raises `TypeError`, `UnicodeEncodeError` (half a surrogate pair) or `OverflowError` if it cannot.
    """
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped)
    msgspec.json.encode(plain)
    return plain


def _dumped(value: Any) -> Any:
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is nothing that JSON can carry")


def _shown(value: Any) -> str:
    """What a provider or an application put beside an answer, as text: it cannot be left out."""
    return repr(value)
