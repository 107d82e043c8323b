"""Agents: what one step of a flow asks, of which model, and what becomes of the answer."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lmclient.core.tools import Tool
from lmclient.errors import FlowError
from lmclient.flows.handler import Handler, Handles, as_handler

if TYPE_CHECKING:
    from lmclient.flows.context import AgentContext
    from lmclient.profiles.model import ModelProfile


class AgentType(enum.StrEnum):
    """What an agent does with the conversation before its call."""

    START_CONVERSATION = "START_CONVERSATION"
    """Starts a new one. Where there was one already, the system prompt stands before the user text in
    one user turn, else it is a system turn."""
    START_CONVERSATION_WITH_SYSTEM_PROMPT = "START_CONVERSATION_WITH_SYSTEM_PROMPT"
    """Starts a new one with a system turn."""
    CONVERSATION = "CONVERSATION"
    """Goes on. A system turn is merged into the first user turn. The agent's own system prompt counts
    only where there is no conversation yet."""
    CONVERSATION_WITH_SYSTEM_PROMPT = "CONVERSATION_WITH_SYSTEM_PROMPT"
    """Goes on, with the system turn at its place; the agent's own is put there if there is none."""
    COMPLETION = "COMPLETION"
    """Stateless: what was said before is dropped."""
    PROCESSING_ONLY = "PROCESSING_ONLY"
    """No model is called."""


@dataclass(frozen=True)
class AgentNext:
    """The name of the next agent, None to end; `grading_passed` puts ✓ or ✗ into the graph."""

    name: str | None
    grading_passed: bool | None = None

    END: ClassVar[AgentNext]


AgentNext.END = AgentNext(None)

ToolLike = Tool | Callable[..., object]
HandlerLike = Handles | Callable[[], Handles]
Hook = Callable[["AgentContext"], Any]


class _Returns:
    """A hook that returns one value. No function, so that it is not bound when looked up on a class."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __call__(self, _: object) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"<always {self.value}>"


_NOTHING = _Returns(None)
_NEVER = _Returns(False)
_AS_NEXT_SAYS = _Returns(None)


@dataclass(eq=False, repr=False)
class Agent:
    """One kind of step, as values, or as a base class.

    Subclasses set fields as class attributes and override the hooks (`pre_process`, `post_process`,
    `merge`, `choose_next`, `retry_on_parsing_error`) or the methods below as methods. A function,
    given or overridden, takes the context and may be async. `type`, `category`, `profile`,
    `system_prompt`, `template` and `tools` may be functions of the context as well. One agent serves
    any number of walks at once; what belongs to a walk is kept in its context.

    Raises `FlowError` without a name or a type.
    """

    name: str = ""
    type: AgentType | Callable[[AgentContext], Any] | None = None
    _: KW_ONLY
    category: str | Callable[[AgentContext], Any] = "m"
    profile: str | ModelProfile | Callable[[AgentContext], Any] | None = None
    """A profile to call instead of the category."""
    system_prompt: str | Callable[[AgentContext], Any] | None = None
    template: str | Callable[[AgentContext], Any] | None = None
    """The user prompt, with placeholders (see `lmclient.flows.template`)."""
    tools: Sequence[ToolLike] | Callable[[AgentContext], Any] = ()
    """What the model may call: functions, which are run, or `Tool`s, whose calls go to the handler."""
    tool_choice: str = "auto"
    """For the first call; once tools were called the model is free to answer."""
    max_tool_rounds: int = 6
    handler: HandlerLike | None = None
    """Reads the answer: a handler, copied for every attempt, or what makes one. None keeps the text
    under `response`."""
    next: str | AgentNext | None = None
    """Short for a `choose_next` that always says the same."""
    pre_process: Hook = _NOTHING
    """Runs before anything else; may set flags and values."""
    post_process: Hook = _NOTHING
    """Runs in each branch after its answer was read."""
    merge: Callable[[list[AgentContext]], Any] = _NOTHING
    """Makes a list of contexts of those of the branches; None keeps them apart."""
    choose_next: Hook = _AS_NEXT_SAYS
    """The next agent: an `AgentNext`, its name, or None to end."""
    retry_on_parsing_error: Hook | bool = _NEVER
    """True starts the step over after two answers that could not be used."""
    max_restarts: int = 3

    def __post_init__(self) -> None:
        cls = self.__class__
        for field in dataclasses.fields(Agent):
            # A default must not hide what a subclass says.
            if (
                self.__dict__.get(field.name) is field.default
                and getattr(cls, field.name) is not field.default
            ):
                del self.__dict__[field.name]
        if not isinstance(self.name, str) or not self.name:
            raise FlowError(f"An agent needs a name, not {self.name!r}.")
        if self.type is None and cls.agent_type is Agent.agent_type:
            raise FlowError(f"Agent {self.name!r} needs a type, such as AgentType.COMPLETION.")

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__} {self.name!r}>"

    def agent_type(self, context: AgentContext) -> Any:
        """The type for this context; by default `type`."""
        return self.type(context) if callable(self.type) else self.type

    def model_category(self, context: AgentContext) -> Any:
        """The category to call; by default `category`."""
        return self.category(context) if callable(self.category) else self.category

    def model_profile(self, context: AgentContext) -> Any:
        """The profile to call instead of the category, None for none; by default `profile`."""
        return self.profile(context) if callable(self.profile) else self.profile

    def tool_definitions(self, context: AgentContext) -> Any:
        """The tools and functions that the model may call; by default `tools`."""
        return self.tools(context) if callable(self.tools) else self.tools

    def response_handler(self, context: AgentContext) -> Any:
        """The handler, or what makes one; by default `handler`."""
        if self.handler is not None:
            return self.handler
        from lmclient.flows.handlers_text import TextHandler

        return TextHandler("response")

    def next_agent(self, context: AgentContext) -> Any:
        """What `choose_next` says, or `next` if that is not given."""
        return self.next if self.choose_next is _AS_NEXT_SAYS else self.choose_next(context)


async def resolved(value: Any, context: AgentContext | None = None) -> Any:
    """The value; of a function, with a context, its result; of something awaitable, what it gives."""
    if context is not None and callable(value):
        value = value(context)
    return await value if inspect.isawaitable(value) else value


async def fresh_handler(agent: Agent, context: AgentContext) -> Handler:
    """A handler for one attempt. Raises `FlowError` naming the agent if it gives none."""
    given = await resolved(agent.response_handler(context))
    if (handler := as_handler(given)) is not None:
        return handler.fresh()
    made = await resolved(given()) if callable(given) else given
    if (handler := as_handler(made)) is None:
        raise FlowError(f"Agent {agent.name!r}: its handler is {made!r:.80}, not a Handler.")
    return handler
