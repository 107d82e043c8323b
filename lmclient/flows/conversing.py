"""What a conversation looks like before an agent's call, by the agent's type."""

from __future__ import annotations

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation, Role, TextPart, Turn
from lmclient.flows.agent import AgentType
from lmclient.flows.context import AgentContext

_GOES_ON = (AgentType.CONVERSATION, AgentType.CONVERSATION_WITH_SYSTEM_PROMPT)
_NOT_RUN = "This call was not run."


def set_up(context: AgentContext, kind: AgentType, system: str | None, text: str) -> Conversation:
    """Makes the conversation for the next call and puts it into the context."""
    turns = context.conversation.turns if context.conversation is not None else []
    if kind in _GOES_ON and turns:
        append_answer(context)
        turns = _continued(context.conversation or Conversation(), kind, system, text)
    elif kind is AgentType.START_CONVERSATION and turns and system:
        turns = [Turn(Role.USER, _joined(system, text))]
    else:
        turns = [Turn(Role.SYSTEM, system)] if system else []
        if text:
            turns.append(Turn(Role.USER, text))
    context.answer_pending = False
    context.conversation = Conversation(turns)
    return context.conversation


def append_answer(context: AgentContext) -> None:
    """Puts the last answer at the end of the conversation, if it belongs there and is not there yet."""
    pending, context.answer_pending = context.answer_pending, False
    if not pending or context.conversation is None or context.last_completion is None:
        return
    turns = context.conversation.turns
    if turns and turns[-1].role is not Role.ASSISTANT:
        context.conversation.append(context.last_completion)


def ask_again(conversation: Conversation, answer: Completion, message: str) -> None:
    """Adds an answer that could not be used, and what to say about it."""
    turns = conversation.turns
    if answer.text or answer.tool_calls:
        conversation.append(answer)
    _say(turns, message)


def goes_on(context: AgentContext, kind: AgentType) -> bool:
    """Whether an agent of this type goes on with a conversation that there is."""
    return kind in _GOES_ON and context.conversation is not None and bool(context.conversation.turns)


def _continued(conversation: Conversation, kind: AgentType, system: str | None, text: str) -> list[Turn]:
    turns = list(conversation.turns)
    has_system = turns[0].role is Role.SYSTEM
    if kind is AgentType.CONVERSATION_WITH_SYSTEM_PROMPT:
        if not has_system and system:
            turns.insert(0, Turn(Role.SYSTEM, system))
    elif has_system:
        first, *turns = turns
        index = next((n for n, turn in enumerate(turns) if turn.role is Role.USER), None)
        if index is None:
            text = _joined(first.text, text)
        else:
            turns[index] = _with_text(turns[index], before=first.text)
    if text:
        _say(turns, text)
    return turns


def _say(turns: list[Turn], text: str) -> None:
    """Adds what the user says, to a user turn if the last one is."""
    turns += _unanswered(turns)
    if turns and turns[-1].role is Role.USER:
        turns[-1] = _with_text(turns[-1], after=text)
    else:
        turns.append(Turn(Role.USER, text))


def _unanswered(turns: list[Turn]) -> list[Turn]:
    """Results for calls of the last answer that nobody ran: without them providers refuse what follows."""
    answered = set()
    for turn in reversed(turns):
        if turn.role is Role.TOOL:
            answered.add(turn.tool_call_id)
        else:
            break
    else:
        return []
    return [
        Turn(Role.TOOL, _NOT_RUN, tool_call_id=call.id, name=call.name, is_error=True)
        for call in turn.tool_calls
        if call.id not in answered
    ]


def _joined(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second


def _with_text(turn: Turn, before: str = "", after: str = "") -> Turn:
    """The turn with text before and after its own content."""
    if isinstance(turn.content, str):
        return msgspec.structs.replace(turn, content=_joined(_joined(before, turn.content), after))
    parts = list(turn.content)
    if before:
        parts.insert(0, TextPart(before))
    if after:
        parts.append(TextPart(after))
    return msgspec.structs.replace(turn, content=parts)
