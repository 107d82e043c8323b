"""Conversations: turns of text, images, files and tool calls."""

from __future__ import annotations

import enum
import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lmclient.core.tools import ToolCall, ToolResult
from lmclient.errors import BadRequestError

if TYPE_CHECKING:
    from lmclient.core.completion import Completion


class Role(enum.StrEnum):
    """Who speaks. Wherever a role is taken its string is, too."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """Text beside other parts."""

    text: str


class ImagePart(msgspec.Struct, frozen=True, tag="image", kw_only=True):
    """An image: either its `url` or its bytes as `data` with a `media_type`."""

    url: str | None = None
    data: bytes | None = None
    media_type: str = "image/png"
    detail: str | None = None

    def __post_init__(self) -> None:
        if not (self.url or self.data):
            raise BadRequestError("An ImagePart needs a url or data; it has neither.")

    @classmethod
    def from_path(cls, path: str | Path) -> ImagePart:
        """The image in a file, read now. Raises `OSError`."""
        data, media_type, _ = _read(path, "image/png")
        return cls(data=data, media_type=media_type)


class FilePart(msgspec.Struct, frozen=True, tag="file", kw_only=True):
    """A document, audio or other file: its `url`, its bytes as `data`, or a provider's `file_id`."""

    url: str | None = None
    data: bytes | None = None
    file_id: str | None = None
    media_type: str = "application/pdf"
    filename: str | None = None

    def __post_init__(self) -> None:
        if not (self.url or self.data or self.file_id):
            raise BadRequestError("A FilePart needs a url, data or a file_id; it has none of them.")

    @classmethod
    def from_path(cls, path: str | Path) -> FilePart:
        """The document in a file, read now. Raises `OSError`."""
        data, media_type, name = _read(path, "application/octet-stream")
        return cls(data=data, media_type=media_type, filename=name)


def _read(path: str | Path, default: str) -> tuple[bytes, str, str]:
    file = Path(path)
    return file.read_bytes(), mimetypes.guess_type(file.name)[0] or default, file.name


Part = TextPart | ImagePart | FilePart


class _Said(msgspec.Struct, frozen=True):
    """The two fields of a turn that may be given by position; msgspec makes the rest keyword-only."""

    role: Role
    content: str | Sequence[Part]


class Turn(_Said, frozen=True, kw_only=True):
    """What one side said: `Turn(role, content)`, the rest by keyword.

    `reasoning`, `tool_calls` and `provider_items` belong to an assistant's turn, `tool_call_id`
    and `is_error` to a tool's. Raises `BadRequestError` for a role that does not exist or content
    that is neither text nor a list of parts.
    """

    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    provider_items: tuple[dict[str, Any], ...] = ()

    if TYPE_CHECKING:  # what may be given; the fields above say what is kept

        def __init__(
            self,
            role: Role | str,
            content: str | Sequence[Part],
            *,
            reasoning: str = "",
            tool_calls: Sequence[ToolCall] = (),
            tool_call_id: str | None = None,
            name: str | None = None,
            is_error: bool = False,
            provider_items: Sequence[dict[str, Any]] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.role) is not Role:
            msgspec.structs.force_setattr(self, "role", _role(self.role))
        if type(self.content) is not str:
            msgspec.structs.force_setattr(self, "content", _content(self.content))
        if type(self.tool_calls) is not tuple:
            msgspec.structs.force_setattr(self, "tool_calls", tuple(self.tool_calls))
        if type(self.provider_items) is not tuple:
            msgspec.structs.force_setattr(self, "provider_items", tuple(self.provider_items))

    @property
    def text(self) -> str:
        """The text of the content, without its other parts."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))


def _role(value: str) -> Role:
    try:
        return Role(value)
    except ValueError:
        names = ", ".join(repr(role.value) for role in Role)
        raise BadRequestError(f"There is no role {value!r}; use one of {names}.") from None


def _content(value: object) -> str | tuple[Part, ...]:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence) and all(
        isinstance(part, TextPart | ImagePart | FilePart) for part in value
    ):
        return tuple(value)
    raise BadRequestError(
        f"A turn's content is a str or a list of TextPart, ImagePart and FilePart, not {_shown(value)}."
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Conversation(msgspec.Struct):
    """The turns so far, oldest first, and the application's own `metadata`, which is never sent."""

    turns: list[Turn] = []
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if type(self.turns) is not list:
            if isinstance(self.turns, str) or not isinstance(self.turns, Iterable):
                raise BadRequestError(f"A conversation needs a list of turns, not {_shown(self.turns)}.")
            self.turns = list(self.turns)
        for number, turn in enumerate(self.turns):
            if not isinstance(turn, Turn):
                raise BadRequestError(f"Turn {number} of a conversation is {_shown(turn)}, not a Turn.")

    @classmethod
    def create(cls, user: str | Sequence[Part], system: str | None = None) -> Conversation:
        """A new conversation with one user turn, after a system turn if `system` is given."""
        turns = [] if system is None else [Turn(Role.SYSTEM, system)]
        return cls([*turns, Turn(Role.USER, user)])

    @classmethod
    def of(cls, value: ConversationLike) -> Conversation:
        """What the clients accept as a conversation: a str is one user turn.

        Raises `BadRequestError` if it is empty or something else.
        """
        if isinstance(value, str):
            conversation = cls([Turn(Role.USER, value)])
        elif isinstance(value, Conversation):
            conversation = value
        elif isinstance(value, Iterable):
            conversation = cls.from_messages(value)
        else:
            raise BadRequestError(
                "A conversation is a str, a Conversation, or a list of Turns or message dicts, "
                f"not {_shown(value)}."
            )
        if not conversation.turns:
            raise BadRequestError("The conversation is empty; add at least one user turn.")
        return conversation

    def add(self, role: Role | str, content: str | Sequence[Part]) -> Conversation:
        """Adds a turn at the end; returns the conversation itself."""
        return self.append(Turn(_role(role), content))

    def append(self, turn: Turn | Completion) -> Conversation:
        """Adds a turn, or a completion as the assistant's turn; returns the conversation itself."""
        self.turns.append(turn if isinstance(turn, Turn) else assistant_turn(turn))
        return self

    def add_tool_round(self, completion: Completion, results: Iterable[ToolResult]) -> Conversation:
        """Adds the assistant's turn with its calls, and one tool turn per result.

        Raises `BadRequestError` if a call has no result or a result no call.
        """
        results = list(results)
        calls = {call.id: call.name for call in completion.tool_calls}
        answered = {result.tool_call_id for result in results}
        if unknown := [id for id in answered if id not in calls]:
            raise BadRequestError(f"There is no tool call with the id {unknown[0]!r} in this completion.")
        if missing := [id for id in calls if id not in answered]:
            raise BadRequestError(f"The tool call {missing[0]!r} ({calls[missing[0]]}) has no result.")
        self.append(completion)
        for result in results:
            self.turns.append(
                Turn(
                    Role.TOOL,
                    result.content,
                    tool_call_id=result.tool_call_id,
                    name=calls[result.tool_call_id],
                    is_error=result.is_error,
                )
            )
        return self

    def rewind(self) -> Conversation:
        """Drops the last user turn and all that came after it; returns the conversation itself."""
        for index in range(len(self.turns) - 1, -1, -1):
            if self.turns[index].role is Role.USER:
                del self.turns[index:]
                break
        return self

    def copy(self) -> Conversation:
        """An independent conversation with the same turns (which never change) and metadata."""
        return Conversation(list(self.turns), dict(self.metadata))

    def to_messages(self) -> list[dict[str, Any]]:
        """The turns as OpenAI-style message dicts."""
        from lmclient.core.messages import to_message

        return [to_message(turn) for turn in self.turns]

    @classmethod
    def from_messages(cls, messages: Iterable[Turn | Mapping[str, Any]]) -> Conversation:
        """The conversation of OpenAI-style message dicts (or Turns, or both).

        Raises `BadRequestError` naming the position of what is neither.
        """
        from lmclient.core.messages import from_message

        if isinstance(messages, str | Mapping):
            raise BadRequestError(f"A list of messages is expected, not {_shown(messages)}.")
        return cls([from_message(message, position) for position, message in enumerate(messages)])


ConversationLike = str | Conversation | Sequence[Turn | Mapping[str, Any]]
"""What the clients take as a conversation."""


def assistant_turn(completion: Completion) -> Turn:
    """The turn that puts an answer into its conversation, with all that the provider wants back."""
    return Turn(
        Role.ASSISTANT,
        completion.text,
        reasoning=completion.reasoning,
        tool_calls=completion.tool_calls,
        provider_items=completion.provider_items,
    )
