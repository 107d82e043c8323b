"""Tools as the TypeScript declarations that OpenAI's models read, for counting them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmclient.core.tools import Tool


def declarations(tools: Sequence[Tool]) -> str:
    """The declarations of all tools as one text."""
    return "".join(
        (
            "# Tools\n\n## functions\n\nnamespace functions {\n\n",
            *map(_function, tools),
            "} // namespace functions",
        )
    )


def _function(tool: Tool) -> str:
    comment = f"// {tool.description}\n" if tool.description else ""
    fields = "".join(_fields(tool.parameters))
    arguments = f"(_: {{\n{fields}}})" if fields else "()"
    return f"{comment}type {tool.name} = {arguments} => any;\n\n"


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    required = schema.get("required")
    for name, value in properties.items():
        if isinstance(value, Mapping) and value.get("description"):
            yield f"// {value['description']}\n"
        optional = "" if isinstance(required, Sequence) and name in required else "?"
        yield f"{name}{optional}: {_type(value)},\n"


def _type(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    match schema:
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value, ensure_ascii=False, default=str) for value in values)
        case {"anyOf": list(options)} | {"oneOf": list(options)}:
            return " | ".join(_type(option) for option in options)
        case {"type": "integer"}:
            return "number"
        case {"type": "array"}:
            return f"{_type(schema.get('items'))}[]"
        case {"type": "object", "properties": Mapping()}:
            return "{\n" + "".join(_fields(schema)) + "}"
        case {"type": str(name)}:
            return name
        case {"$ref": str(reference)}:
            return reference.rsplit("/", 1)[-1]
        case _:
            return "any"
