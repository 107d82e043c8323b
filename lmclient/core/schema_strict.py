"""JSON schemas by OpenAI's strict rules, and the way back for values that follow them.

https://platform.openai.com/docs/guides/structured-outputs, section "Supported schemas": every object
is closed and requires all of its properties, so that a property which may be left out has to be
nullable instead; the root is an object; only some keywords are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lmclient.core.schema import Json, Misfit, type_schema, validate_json

STRUCTURE_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"}
    | {"$ref", "$defs", "definitions", "title", "description", "format"}
)
"""What every provider with a strict mode knows."""
STRICT_KEYWORDS = STRUCTURE_KEYWORDS | frozenset(
    {"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems"}
)
"""What OpenAI's strict mode knows."""
_DROPPED = frozenset(
    {"default", "examples", "example", "discriminator", "deprecated", "readOnly", "writeOnly"}
    | {"$schema", "$id", "$comment", "$anchor"}
)
"""Keywords that say nothing about a value; other unknown keywords move to the description."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_DEFINITIONS = ("$defs", "definitions")
_MAPS = ("properties", *_DEFINITIONS)
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
NULL: Json = {"type": "null"}


def is_object(schema: Json) -> bool:
    """Whether the values of the schema are objects, of one shape."""
    root = _rooted(schema)
    return root.get("type") == "object" and not any(keyword in root for keyword in ("anyOf", "oneOf"))


def object_schema(schema: Json) -> Json:
    """The schema if it is an object's, else that of an object whose only property `value` has it."""
    if is_object(schema):
        return _rooted(schema)
    definitions: Json = {key: schema[key] for key in _DEFINITIONS if key in schema}
    value = {key: part for key, part in schema.items() if key not in definitions}
    wrapped: Json = {"type": "object", "properties": {"value": value}, "required": ["value"]}
    return {**wrapped, "additionalProperties": False, **definitions}


def can_be_strict(schema: Json) -> bool:
    """Whether strict rules can express the schema: no open maps, nothing of any type."""
    return not any(_is_open(part) for part in _walk(schema))


def to_strict(schema: Json, keywords: frozenset[str] = STRICT_KEYWORDS) -> Json:
    """The schema of an object by strict rules, for a provider that knows these keywords."""
    return _Strict(schema, keywords).convert(schema, ())


def read_strict(type_: Any, text: str) -> Any:
    """The JSON text as a value of a type, also with null where the type has a property left out.

    Raises `Misfit`.
    """
    try:
        return validate_json(type_, text)
    except Misfit:
        value, schema = json.loads(text), type_schema(type_)
        pruned = _without_nulls(value, schema, schema)
        if pruned == value:
            raise
        return validate_json(type_, json.dumps(pruned))


def resolve(schema: Any, root: Json) -> Any:
    """The schema that a `$ref` inside the root points to; another schema as it is."""
    for _ in range(32):  # a chain of references that never ends is not worth more
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            break
        target: Any = root
        for step in schema["$ref"].lstrip("#").strip("/").split("/"):
            if step and not isinstance(target, Mapping):
                return {}
            target = target.get(step.replace("~1", "/").replace("~0", "~"), {}) if step else target
        schema = target
    return schema


def _rooted(schema: Json) -> Json:
    """The schema with a reference at its root replaced by what it points to."""
    if "$ref" not in schema:
        return schema
    reference = schema["$ref"]
    root = {**resolve(schema, schema), **{key: part for key, part in schema.items() if key != "$ref"}}
    name = str(reference).rpartition("/")[2]
    if json.dumps(root).count(json.dumps(reference)) == 0:  # nothing else points there
        root["$defs"] = {key: part for key, part in root.get("$defs", {}).items() if key != name}
    return {key: part for key, part in root.items() if key != "$defs" or part}


def _walk(schema: Any) -> Iterator[Any]:
    yield schema
    if not isinstance(schema, Mapping):
        return
    for keyword in _MAPS:
        for part in schema.get(keyword, {}).values():
            yield from _walk(part)
    for keyword in _LISTS:
        for part in schema.get(keyword, ()):
            yield from _walk(part)
    if isinstance(schema.get("items"), Mapping):
        yield from _walk(schema["items"])


def _is_open(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or "patternProperties" in schema:
        return True
    if any(keyword in schema for keyword in ("$ref", "anyOf", "oneOf", "allOf", "enum", "const")):
        return False
    kinds = _kinds(schema)
    if "object" in kinds:
        extra = schema.get("additionalProperties")
        return isinstance(extra, Mapping) or ("properties" not in schema and extra is not False)
    if "array" in kinds:
        return not isinstance(schema.get("items"), Mapping) and not schema.get("prefixItems")
    return not kinds


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


class _Strict:
    """One conversion: the root that references point into, and the keywords that may stay."""

    def __init__(self, root: Json, keywords: frozenset[str]) -> None:
        self._root = root
        self._keywords = keywords

    def convert(self, schema: Mapping[str, Any], inlined: tuple[str, ...]) -> Json:
        """The schema by strict rules; `inlined` are the references that it was reached through."""
        if "$ref" in schema:
            reference = schema["$ref"]
            if all(keyword == "$ref" or keyword in _DROPPED for keyword in schema) or reference in inlined:
                return {"$ref": reference}
            siblings = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
            return self.convert({**resolve(schema, self._root), **siblings}, (*inlined, reference))
        schema = self._plain(schema)
        result = {
            keyword: self._converted(keyword, value, inlined)
            for keyword, value in schema.items()
            if self._knows(keyword, value)
        }
        self._describe(schema, result)
        if "object" in _kinds(schema):
            _close(schema, result)
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if values is not None and "type" not in result:
            kinds = list(dict.fromkeys(_TYPES.get(type(value), "object") for value in values))
            result["type"] = kinds[0] if len(kinds) == 1 else kinds
        return result

    def _plain(self, schema: Mapping[str, Any]) -> Json:
        """The schema with `oneOf`, `allOf` and `prefixItems` said in words that strict rules know."""
        plain = dict(schema)
        if "oneOf" in plain:
            plain["anyOf"] = [*plain.get("anyOf", []), *plain.pop("oneOf")]
        for part in plain.pop("allOf", ()):
            part = resolve(part, self._root)
            for keyword, value in part.items():
                if keyword == "properties":
                    plain[keyword] = {**plain.get(keyword, {}), **value}
                elif keyword == "required":
                    plain[keyword] = [*plain.get(keyword, []), *value]
                else:
                    plain.setdefault(keyword, value)
        if positions := plain.pop("prefixItems", None):
            different = [part for i, part in enumerate(positions) if part not in positions[:i]]
            plain["items"] = different[0] if len(different) == 1 else {"anyOf": different}
        return plain

    def _converted(self, keyword: str, value: Any, inlined: tuple[str, ...]) -> Any:
        if keyword in _MAPS:
            return {name: self.convert(part, inlined) for name, part in value.items()}
        if keyword in _LISTS:
            return [self.convert(part, inlined) for part in value]
        return self.convert(value, inlined) if keyword == "items" and isinstance(value, Mapping) else value

    def _knows(self, keyword: str, value: Any) -> bool:
        if keyword == "format" and value not in _FORMATS:
            return False
        if keyword == "pattern" and any(group in value for group in ("(?=", "(?!", "(?<")):
            return False  # strict rules refuse lookaround, which pydantic's Decimal has
        return keyword in self._keywords

    def _describe(self, schema: Json, result: Json) -> None:
        lost = [
            f"{keyword}: {value if isinstance(value, str) else json.dumps(value)}"
            for keyword, value in schema.items()
            if keyword not in result and keyword not in _DROPPED
        ]
        if lost:
            result["description"] = f"{result.get('description', '')} ({', '.join(lost)})".strip()


def _close(schema: Json, result: Json) -> None:
    """Closes an object and requires all properties; those that were optional may be null."""
    properties = result.setdefault("properties", {})
    required = schema.get("required", [])
    for name, part in properties.items():
        if name not in required:
            properties[name] = _nullable(part)
    result["required"] = list(properties)
    result["additionalProperties"] = False


def _nullable(schema: Json) -> Json:
    if _accepts_null(schema) or "const" in schema or len(schema.get("enum", "ab")) == 1:
        return schema  # a tag with only one value is better said than left out
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], NULL]}
    said: Json = {key: schema[key] for key in ("title", "description") if key in schema}
    return {"anyOf": [{key: value for key, value in schema.items() if key not in said}, NULL], **said}


def _accepts_null(schema: Mapping[str, Any]) -> bool:
    if "null" in _kinds(schema) or None in schema.get("enum", ()):
        return True
    return any(_accepts_null(part) for keyword in ("anyOf", "oneOf") for part in schema.get(keyword, ()))


def _without_nulls(value: Any, schema: Any, root: Json) -> Any:
    schema = resolve(schema, root)
    if not isinstance(schema, Mapping):
        return value
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    for branch in branches:
        value = _without_nulls(value, branch, root)
    if isinstance(value, list):
        return [_without_nulls(item, schema.get("items"), root) for item in value]
    if not isinstance(value, dict) or not value.keys() <= schema.get("properties", {}).keys():
        return value
    properties, required = schema["properties"], schema.get("required", [])
    return {
        name: _without_nulls(part, properties[name], root)
        for name, part in value.items()
        if part is not None or name in required or _accepts_null(resolve(properties[name], root))
    }
