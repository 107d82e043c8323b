"""CsvHandler and CsvRowsHandler: read a table out of an answer, however a model wraps it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from lmclient.core.completion import Completion
from lmclient.core.schema import Misfit, type_name
from lmclient.core.schema_strict import resolve
from lmclient.core.structured import json_schema
from lmclient.flows.csv_reading import normalized, read_table
from lmclient.flows.csv_typing import row_of
from lmclient.flows.handler import Handler
from lmclient.flows.handlers_failure import Unreadable

if TYPE_CHECKING:
    from lmclient.flows.context import AgentContext


class CsvHandler(Handler):
    """Puts each column of a CSV table under `prefix` and its header name, as a list of texts.

    The table may stand in prose or in a code fence, separated by `,`, `;`, tabs or `|`. An answer
    without a table of at least one row is asked for again.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def fresh(self) -> Self:
        return copy.copy(self)

    def handle(self, completion: Completion, context: AgentContext) -> bool:
        table = read_table(completion.text)
        for number, name in enumerate(table.header):
            context.set_all(self._prefix + name, [row[number] for row in table.rows])
        return True

    def retry_message(self, error: Exception | None) -> str:
        return _retry_message(error, "a header line and one line per row")


class CsvRowsHandler(Handler):
    """Puts the rows of a CSV table under `key`, each as a `row` (a dataclass, pydantic model, ...).

    Columns belong to the fields of their names, whatever their case and order; a table without a
    header has the fields in their order. An empty text is the field's default or None where it is no
    value itself. If a row does not fit, the answer is asked for again, with the reason.

    Raises `TypeError` for a `row` that is no type with named fields.
    """

    def __init__(self, key: str, row: Any) -> None:
        self._key = key
        self._row = row
        schema = resolve(json_schema(row), json_schema(row))
        if not isinstance(fields := schema.get("properties"), Mapping) or not fields:
            raise TypeError(f"{type_name(row)} has no fields for the columns of a table.")
        self._fields = list(fields)

    def fresh(self) -> Self:
        return copy.copy(self)

    def handle(self, completion: Completion, context: AgentContext) -> bool:
        table = read_table(completion.text, self._fields)
        by_name = {normalized(field): field for field in self._fields}
        names = [by_name.get(normalized(name)) for name in table.header]
        rows = []
        for number, texts in enumerate(table.rows, start=1):
            cells = {name: text for name, text in zip(names, texts, strict=True) if name is not None}
            try:
                rows.append(row_of(self._row, cells))
            except Misfit as misfit:
                raise Unreadable(f"row {number} does not fit: {misfit}") from None
        context.set_all(self._key, rows)
        return True

    def retry_message(self, error: Exception | None) -> str:
        return _retry_message(error, f"the header line {','.join(self._fields)} and one line per row")


def _retry_message(error: Exception | None, wanted: str) -> str:
    reason = f": {error}" if error is not None and str(error) else ""
    return (
        f"Your answer could not be used{reason}. Answer again with nothing but CSV: {wanted}; "
        'put fields that hold commas, quotes or line ends in double quotes, with "" for a quote.'
    )
