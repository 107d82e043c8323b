"""What reads a model's answer into the context: the contract of every handler."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from lmclient.core.completion import Chunk, Completion

if TYPE_CHECKING:
    from lmclient.flows.context import AgentContext


class Handler:
    """Reads one answer into the context. Every attempt gets a new one, made by `fresh`.

    Override `handle`; the rest has a sensible meaning already.
    """

    def fresh(self) -> Self:
        """A handler like this one, as it was made, for one attempt. By default a deep copy."""
        return copy.deepcopy(self)

    @property
    def tool_functions(self) -> Mapping[str, Callable[..., object]]:
        """The functions that the model may call, by name; by default none."""
        return {}

    def handle(self, completion: Completion, context: AgentContext) -> bool | Awaitable[bool]:
        """Puts the answer into the context; may be async.

        False or an exception means that the answer cannot be used: the model is asked again, once.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method handle.")

    def on_chunk(self, chunk: Chunk, context: AgentContext) -> Any:
        """Told of each chunk while the answer streams, before `handle`; may be async."""

    def retry_message(self, error: Exception | None) -> str:
        """What to ask of the model after an answer that `handle` could not use.

        `error` is what `handle` raised, None if it returned False.
        """
        reason = f": {error}" if error is not None and str(error) else ""
        return f"Your answer could not be used{reason}. Answer again in the requested format."


class Handles(Protocol):
    """What is enough for a handler; `on_chunk` and `retry_message` are used where it has them."""

    def handle(self, completion: Completion, context: AgentContext) -> bool | Awaitable[bool]:
        """See `Handler.handle`."""
        ...


class _Adapted(Handler):
    """An object of another class that has the method `handle`."""

    def __init__(self, inner: Handles) -> None:
        self._inner = inner

    def handle(self, completion: Completion, context: AgentContext) -> bool | Awaitable[bool]:
        return self._inner.handle(completion, context)

    def on_chunk(self, chunk: Chunk, context: AgentContext) -> Any:
        told = getattr(self._inner, "on_chunk", None)
        return None if told is None else told(chunk, context)

    def retry_message(self, error: Exception | None) -> str:
        asked = getattr(self._inner, "retry_message", None)
        return super().retry_message(error) if asked is None else str(asked(error))


def as_handler(given: object) -> Handler | None:
    """The handler that `given` is or can be, None if it has no `handle`; a class is none yet."""
    if isinstance(given, Handler):
        return given
    if isinstance(given, type) or not callable(getattr(given, "handle", None)):
        return None
    return _Adapted(cast(Handles, given))
