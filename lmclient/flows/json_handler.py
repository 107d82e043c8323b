"""JsonHandler: reads JSON out of an answer, however a model wraps and breaks it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from lmclient.core.completion import Chunk, Completion, FinishReason
from lmclient.core.schema import Misfit
from lmclient.core.schema_strict import read_strict
from lmclient.core.structured import json_schema, schema_name
from lmclient.flows.handler import Handler
from lmclient.flows.handlers_failure import Unreadable
from lmclient.flows.json_finding import json_values
from lmclient.flows.json_flattening import flattened

if TYPE_CHECKING:
    from lmclient.flows.context import AgentContext

OnPartial = Callable[[Any, "AgentContext"], Any]
"""Told of the part of the JSON value that has arrived; may be async."""

_BEGINS = re.compile(r"""[{\[]\s*(?=["{\[\]}\w-])""")
_SHARE = 32
"""Of a long answer every 32nd part more is worth another look."""


class JsonHandler(Handler):
    """Reads the JSON in an answer: bare, in prose or in a code fence, repaired where it is broken.

    Each leaf is put under `prefix` and its field's name: scalars as values, arrays as lists, arrays
    of objects field by field, nested objects by their leaves. With a `schema` (a pydantic model,
    dataclass, TypedDict, msgspec Struct, or a JSON schema, which is not checked) the value itself is
    put under `prefix`, or under "response" if there is none. `on_partial` is told of the value as far
    as it has arrived while the answer streams.

    An answer that cannot be read, does not fit the schema, or was cut off by the token limit before
    its JSON was complete is asked for again, with the reason.

    Raises `TypeError` for a schema that JSON cannot carry.
    """

    def __init__(self, prefix: str = "", schema: Any = None, *, on_partial: OnPartial | None = None) -> None:
        self._prefix = prefix
        self._schema = schema
        self._json_schema = None if schema is None else json_schema(schema)
        self._on_partial = on_partial
        self._text = ""
        self._looked_at = 0
        self._offered: Any = None

    def fresh(self) -> Self:
        twin = copy.copy(self)
        twin._text, twin._looked_at, twin._offered = "", 0, None
        return twin

    def handle(self, completion: Completion, context: AgentContext) -> bool:
        cut_off = completion.finish_reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
        try:
            values = json_values(completion.text, exact=cut_off)
        except Unreadable as problem:
            raise _cut_off(completion) if cut_off else problem from None
        if self._schema is not None:
            context.set(self._prefix or "response", self._fitting(values))
            return True
        leaves = flattened(values[0], self._prefix)
        if "" in leaves:
            raise Unreadable("it is an array; a JSON object with named fields is expected")
        for key, items in leaves.items():
            context.set_all(key, items)
        return True

    def on_chunk(self, chunk: Chunk, context: AgentContext) -> Any:
        if self._on_partial is None or not chunk.text:
            return None
        self._text += chunk.text
        if len(self._text) - self._looked_at < self._looked_at // _SHARE:
            return None
        self._looked_at = len(self._text)
        partial = _partial(self._text)
        if partial is None or partial == self._offered:
            return None
        self._offered = partial
        return self._on_partial(partial, context)

    def retry_message(self, error: Exception | None) -> str:
        reason = f": {error}" if error is not None and str(error) else ""
        wanted = "one valid JSON value"
        if self._json_schema is not None:
            schema = json.dumps(self._json_schema, ensure_ascii=False)
            wanted = f"one valid JSON value that fits this JSON schema: {schema}"
        return (
            f"Your answer could not be used{reason}. Answer again with nothing but {wanted}; "
            "put all names and texts in double quotes, and escape quotes and line ends inside of them."
        )

    def _fitting(self, values: list[Any]) -> Any:
        """The first value that fits the schema. Raises `Unreadable` if none does."""
        first: Misfit | None = None
        for value in _unwrapped(values):
            try:
                return self._read(value)
            except Misfit as misfit:
                first = first or misfit
        raise Unreadable(f"it does not fit {schema_name(self._schema)}: {first}")

    def _read(self, value: Any) -> Any:
        if not isinstance(self._schema, Mapping):
            return read_strict(self._schema, json.dumps(value))
        wanted = (self._json_schema or {}).get("type")
        if {"object": dict, "array": list}.get(wanted or "", type(value)) is not type(value):
            raise Misfit(("", f"expected an {wanted}"))
        return value


def _unwrapped(values: list[Any]) -> Iterator[Any]:
    """The values, then what stands alone in an array or an object: models add and forget a level."""
    yield from values
    for value in values:
        if len(value) == 1:
            (inner,) = value if isinstance(value, list) else value.values()
            yield inner


def _cut_off(completion: Completion) -> Unreadable:
    if completion.finish_reason is FinishReason.CONTENT_FILTER:
        return Unreadable("it was stopped by the provider's content filter before its JSON was complete")
    limit = completion.metadata.get("max_tokens")
    tokens = completion.usage.output_tokens
    after = (
        f" (max_tokens {limit})" if isinstance(limit, int) else f" after {tokens} tokens" if tokens else ""
    )
    return Unreadable(f"it was truncated by the token limit{after} before its JSON was complete")


def _partial(text: str) -> Any:
    """The JSON value in the text as far as it has arrived, None if there is none yet."""
    import pydantic_core

    begins = _BEGINS.search(text)
    if begins is None:
        return None
    part = text[begins.start() :]
    try:
        return pydantic_core.from_json(part, allow_partial="trailing-strings")
    except ValueError:
        pass
    try:
        return json.JSONDecoder(strict=False).raw_decode(part)[0]  # it has ended, and words follow
    except (ValueError, RecursionError):
        return None
