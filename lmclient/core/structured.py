"""Structured output: what is asked of the model for a `response_format`, and what is read back.

A response format is a type (a pydantic model, dataclass, TypedDict, msgspec Struct, or lists and
unions of them), a JSON schema, or the `response_format` of OpenAI's chat completions
(https://platform.openai.com/docs/api-reference/chat/create). Where a provider wants an object and
the type is none, the answer is asked for as `{"value": ...}`, which `parse_completion` unwraps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.conversation import Conversation, Role, TextPart, Turn
from lmclient.core.schema import Json, Misfit, type_name, type_schema
from lmclient.core.schema_strict import (
    STRICT_KEYWORDS,
    can_be_strict,
    is_object,
    object_schema,
    read_strict,
    to_strict,
)
from lmclient.errors import ProtocolError

T = TypeVar("T")
_DECODER = json.JSONDecoder()
_OPENING = re.compile(r"""\{[ \t\r\n]*["}]|\[[ \t\r\n]*["{\[\]\dtfn-]""")
_THINKING = re.compile(r"\A\s*<think(ing)?>.*?</think(ing)?>", re.DOTALL)
_MAX_OPENINGS = 2000
"""More are not tried: each failure costs the decoder the time to count the lines before it."""


def json_schema(response_format: Any) -> Json:
    """The plain JSON schema of a response format.

    Raises `TypeError` if JSON cannot carry the type.
    """
    if not isinstance(response_format, Mapping):
        return type_schema(response_format)
    if response_format.get("type") == "json_object":
        return {"type": "object"}
    return dict(_declared(response_format).get("schema", response_format))


def schema_name(response_format: Any) -> str:
    """A name for the schema, of letters, digits, `_` and `-`, at most 64 of them."""
    if isinstance(response_format, Mapping):
        schema = json_schema(response_format)
        name = _declared(response_format).get("name") or schema.get("title") or "answer"
    else:
        name = type_name(response_format)
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", str(name)).strip("_")[:64] or "answer"


def is_strict_possible(response_format: Any) -> bool:
    """Whether OpenAI's strict rules can express the format: no open maps, no values of any type."""
    if isinstance(response_format, Mapping) and _declared(response_format).get("strict") is False:
        return False
    return can_be_strict(json_schema(response_format))


def strict_schema(response_format: Any, *, keywords: frozenset[str] = STRICT_KEYWORDS) -> Json:
    """The schema by OpenAI's strict rules, always of an object.

    Where those rules cannot express it (see `is_strict_possible`) it is the plain schema of an
    object, to be sent with `strict` false. Keywords that are not among `keywords` move to the
    descriptions.
    """
    schema = object_schema(json_schema(response_format))
    return to_strict(schema, keywords) if is_strict_possible(response_format) else schema


def json_schema_format(response_format: Any, json_schema_mode: bool) -> Json:
    """The `response_format` of OpenAI's chat completions.

    Without `json_schema_mode` it only asks for a JSON object; the schema then has to stand in the
    prompt, see `with_instruction`.
    """
    if not json_schema_mode or response_format == {"type": "json_object"}:
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema_name(response_format),
            "schema": strict_schema(response_format),
            "strict": is_strict_possible(response_format),
        },
    }


def schema_instruction(response_format: Any) -> str:
    """The request for the format in words, for providers that take no schema."""
    schema = json.dumps(object_schema(json_schema(response_format)), ensure_ascii=False)
    return (
        "Answer with one JSON object and nothing else: no text around it, no code fence. "
        f"It must fit this JSON schema:\n{schema}"
    )


def with_instruction(conversation: Conversation, response_format: Any) -> Conversation:
    """A new conversation whose system turn also asks for the format; one is put in front if none is."""
    text = schema_instruction(response_format)
    turns = conversation.turns
    if not turns or turns[0].role is not Role.SYSTEM:
        return Conversation([Turn(Role.SYSTEM, text), *turns], conversation.metadata)
    system = turns[0]
    if isinstance(system.content, str):
        content: Any = f"{system.content}\n\n{text}"
    else:
        content = [*system.content, TextPart(f"\n\n{text}")]
    changed = msgspec.structs.replace(system, content=content)
    return Conversation([changed, *turns[1:]], conversation.metadata)


def parse_completion(completion: Completion, model: type[T]) -> T:
    """The text of the completion as a value of the model.

    The text is JSON, or holds it between other words or in a code fence: then the first JSON value
    that fits counts, after the block of thinking with which the text may begin. For a JSON schema
    instead of a type the value is returned as it is, an object where the schema is an object's.

    Raises `ProtocolError`, whose `partial` is the completion, if nothing fits, or if the answer was
    cut off and is no whole value.
    """
    type_: Any = model
    if isinstance(model, Mapping):
        type_ = dict if json_schema(model).get("type") == "object" else Any
    cut_off = completion.finish_reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
    misfits: dict[str, Misfit] = {}
    for text in _json_values(_after_thinking(completion.text), whole=cut_off):
        try:
            value: T = _read(text, type_)
        except Misfit as misfit:
            misfits[text] = misfit
        else:
            return value
    raise _refusal(completion, schema_name(model), misfits)


def validation_message(error: Exception) -> str:
    """What to tell the model about an answer that could not be used, when asking it again."""
    return (
        f"Your answer could not be used. {error} "
        "Answer again, with nothing but the complete JSON value that fits the schema."
    )


def _declared(response_format: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name, schema and strictness in an OpenAI response format, in chat's or Responses' nesting."""
    if response_format.get("type") != "json_schema":
        return {}
    inner = response_format.get("json_schema", response_format)
    return inner if isinstance(inner, Mapping) else {}


def _after_thinking(text: str) -> str:
    """The text behind a first block of thinking, whose drafts are not the answer."""
    return _THINKING.sub("", text, count=1).strip()


def _json_values(text: str, whole: bool) -> Iterator[str]:
    """The JSON text, or the objects and arrays in it; `whole` leaves out what is only a part of it."""
    try:
        _DECODER.decode(text)
    except (ValueError, RecursionError):
        pass
    else:
        yield text
        return
    if whole:
        return
    position = 0
    for _ in range(_MAX_OPENINGS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        start = opening.start()
        try:
            _, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # What was read until there belongs to a broken value; parts of it are no answer.
            position = max(error.pos, start + 1)
        except RecursionError:
            return
        else:
            yield text[start:position]


def _read(text: str, type_: Any) -> Any:
    """The JSON text, or what is wrapped in it, as a value of the type. Raises `Misfit`."""
    value = json.loads(text)
    if not (isinstance(value, dict) and value.keys() == {"value"}) or is_object(type_schema(type_)):
        return read_strict(type_, text)
    try:
        return read_strict(type_, json.dumps(value["value"]))
    except Misfit as misfit:
        try:  # sent to a provider that needs no wrapping, the type may have a `value` of its own
            return read_strict(type_, text)
        except Misfit:
            raise misfit from None


def _refusal(completion: Completion, name: str, misfits: Mapping[str, Misfit]) -> ProtocolError:
    """Why no value could be read: the first cause that explains the others."""
    answer = f"The answer of {completion.profile!r}" if completion.profile else "The answer"
    cause: Misfit | None = None
    if completion.finish_reason is FinishReason.LENGTH:
        message = f"{answer} was truncated by the token limit{_limit(completion)} before {name} was complete."
    elif completion.finish_reason is FinishReason.CONTENT_FILTER:
        message = f"{answer} was stopped by the provider's content filter before {name} was complete."
    elif misfits:
        cause = misfits[max(misfits, key=len)]
        message = f"{answer} does not fit {name}: {cause}."
    elif completion.text.strip():
        message = f"{answer} holds no JSON for {name} but {completion.text.strip()!r:.100}."
    elif completion.tool_calls:
        calls = ", ".join(call.name for call in completion.tool_calls)
        message = f"{answer} is no {name} but a call of tools ({calls}); answer the calls first."
    else:
        message = f"{answer} is empty; expected {name}."
    error = ProtocolError(message)
    error.partial = completion
    error.__cause__ = cause
    return error


def _limit(completion: Completion) -> str:
    if isinstance(limit := completion.metadata.get("max_tokens"), int):
        return f" (max_tokens {limit})"
    return f" after {tokens} output tokens" if (tokens := completion.usage.output_tokens) else ""
