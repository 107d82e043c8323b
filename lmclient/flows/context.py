"""The context of a flow: what its agents read, write and hand on."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation
from lmclient.errors import FlowError
from lmclient.flows.statistics import FlowStatistics
from lmclient.flows.trace import TraceStep
from lmclient.flows.typed_values import as_type

if TYPE_CHECKING:
    from lmclient.flows.agent import Agent

T = TypeVar("T")
_CONTAINERS = (list, dict, set)


class SkipCompletion(enum.StrEnum):
    """Whether the next step calls its model."""

    NO_SKIP = "NO_SKIP"
    SETUP_CONVERSATION_ONLY = "SETUP_CONVERSATION_ONLY"
    """The prompt is put into the conversation, but the model is not called."""
    SKIP = "SKIP"
    """Neither."""


class ErrorType(enum.StrEnum):
    """Why a context did not get to the end."""

    PARSING = "PARSING"
    """The model's answer could not be used, also when asked again."""
    GENERAL = "GENERAL"


class AgentContext:
    """A mapping from keys to lists of values, and the state of the walk.

    Branches of a walk get copies. Lists, dicts and sets among the values are copied with them,
    other objects are shared. Not to be walked twice at once.

    Raises `FlowError` if two of the `agents` have one name.
    """

    def __init__(self, agents: Iterable[Agent] = ()) -> None:
        self.agents: dict[str, Agent] = {}
        """The agents of the flow by name."""
        for agent in agents:
            if agent.name in self.agents:
                raise FlowError(f"Two agents of the flow are named {agent.name!r}; names must differ.")
            self.agents[agent.name] = agent
        self._values: dict[str, tuple[Any, ...]] = {}
        self._single: set[str] = set()
        self.conversation: Conversation | None = None
        self.statistics = FlowStatistics()
        """What all calls of the walk used; its branches share it."""
        self.graph: list[str] = []
        """The marks of the way that led here, see `graph_text`."""
        self.trace: list[TraceStep] = []
        """The steps that led here, those of merged branches included."""
        self.last_completion: Completion | None = None
        self.error_type: ErrorType | None = None
        self.error: Exception | None = None
        self.streaming = False
        """Answers are streamed: handlers and `on_update` see each chunk."""
        self.skip_next_completion = SkipCompletion.NO_SKIP
        """Falls back to `NO_SKIP` after one step."""
        self.skip_cache = False
        """The next prompt does not read the cache; falls back to False after it."""
        self.always_skip_cache = False
        """No prompt reads the cache."""
        self.answer_pending = False
        """`last_completion` belongs at the end of the conversation, but is not there yet."""
        self.parents: tuple[int, ...] = ()
        """The ids of the steps in `trace` that the next step follows."""

    @overload
    def get(self, key: str) -> Any: ...
    @overload
    def get(self, key: str, type: type[T]) -> T | None: ...
    @overload
    def get(self, key: str, type: Any) -> Any: ...

    def get(self, key: str, type: Any = None) -> Any:
        """The first value of the key, None if there is none.

        With a `type` it is a value of it, read leniently (`"5"` is an int). Raises `FlowError`
        naming the key if it cannot be.
        """
        values = self._values.get(key)
        if not values:
            return None
        return values[0] if type is None else as_type(key, values[0], type)

    @overload
    def get_all(self, key: str) -> list[Any]: ...
    @overload
    def get_all(self, key: str, type: type[T]) -> list[T]: ...
    @overload
    def get_all(self, key: str, type: Any) -> list[Any]: ...

    def get_all(self, key: str, type: Any = None) -> list[Any]:
        """A new list of all values of the key, empty if there are none; `type` as in `get`."""
        values = self._values.get(key, ())
        return list(values) if type is None else [as_type(key, value, type) for value in values]

    def set(self, key: str, value: Any) -> None:
        """Makes `value` the only value of the key."""
        self._values[key] = (value,)
        self._single.add(key)

    def set_all(self, key: str, values: Iterable[Any]) -> None:
        """Makes `values` the values of the key. Raises `FlowError` for a text."""
        if isinstance(values, str | bytes):
            raise FlowError(f"set_all({key!r}, ...) takes a list of values, not a text; use set.")
        self._values[key] = tuple(values)
        self._single.discard(key)

    def append(self, key: str, value: Any) -> None:
        """Adds a value at the end of the key's list."""
        self._values[key] = (*self._values.get(key, ()), value)
        self._single.discard(key)

    def remove(self, key: str) -> None:
        """Removes the key with all its values, if it is there."""
        self._values.pop(key, None)
        self._single.discard(key)

    def is_single(self, key: str) -> bool:
        """Whether the key's value was given by `set`, so that it stands for itself, not for a list."""
        return key in self._single

    def keys(self) -> KeysView[str]:
        """The keys that have been set, in order."""
        return self._values.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __repr__(self) -> str:
        error = f", error={self.error!r}" if self.error is not None else ""
        return f"<AgentContext {', '.join(self._values) or 'without values'}; {self.graph_text()}{error}>"

    def graph_text(self) -> str:
        """The marks of `graph` in one line."""
        return ", ".join(self.graph)

    def fail(self, error: Exception, error_type: ErrorType = ErrorType.GENERAL) -> None:
        """Keeps the error that ended this context's way."""
        self.error, self.error_type = error, error_type

    def copy(self) -> Self:
        """A context of its own with the same content; the statistics stay shared."""
        return self._twin({key: _copied(values) for key, values in self._values.items()})

    def branches(self, count: int, columns: Mapping[str, Sequence[Any]]) -> Iterator[Self]:
        """`count` copies, each with only its own element of every column."""
        kept = {key: values for key, values in self._values.items() if key not in columns}
        with_containers = [key for key, values in kept.items() if _has_containers(values)]
        for number in range(count):
            values = dict(self._values)
            for key in with_containers:
                values[key] = _copied(values[key])
            branch = self._twin(values)
            for key, column in columns.items():
                branch.set(key, column[number])
            yield branch

    def _twin(self, values: dict[str, tuple[Any, ...]]) -> Self:
        twin = self.__class__.__new__(self.__class__)
        twin.__dict__.update(self.__dict__)
        twin._values = values
        twin._single = self._single.copy()
        twin.graph = self.graph.copy()
        twin.trace = self.trace.copy()
        if self.conversation is not None:
            twin.conversation = self.conversation.copy()
        return twin

    def to_json(self) -> str:
        """Everything but the agents and what JSON cannot carry, as a JSON text."""
        from lmclient.flows.context_json import encode

        return encode(self)

    @classmethod
    def from_json(cls, text: str | bytes, agents: Iterable[Agent] = ()) -> AgentContext:
        """The context that `to_json` wrote, with the agents given anew.

        Raises `FlowError` if the text is not such a context.
        """
        from lmclient.flows.context_json import decode

        return decode(text, agents)


def _has_containers(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, _CONTAINERS) for value in values)


def _copied(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_copied_value, values)) if _has_containers(values) else values


def _copied_value(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied_value(part) for key, part in value.items()}
    if type(value) is list:
        return [_copied_value(part) for part in value]
    return set(value) if type(value) is set else value
