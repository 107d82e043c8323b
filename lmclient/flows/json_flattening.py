"""JSON as values of a context: every leaf under its own name."""

from __future__ import annotations

from typing import Any


def flattened(value: Any, prefix: str = "") -> dict[str, list[Any]]:
    """The leaves of a JSON object, or of an array of objects, by prefix and field.

    Arrays are lists, arrays of objects one list for each field (with None where an object lacks it),
    nested objects the leaves in them. Leaves of one name share a list, in their order. The items of an
    array that are no objects have the prefix as their key.
    """
    leaves: dict[str, list[Any]] = {}
    if isinstance(value, list):
        _add_items(leaves, prefix, prefix, value)
    else:
        _add_fields(leaves, prefix, value)
    return leaves


def _add_fields(leaves: dict[str, list[Any]], prefix: str, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if isinstance(value, dict):
            _add_fields(leaves, prefix, value)
        elif isinstance(value, list):
            _add_items(leaves, prefix, prefix + name, value)
        else:
            leaves.setdefault(prefix + name, []).append(value)


def _add_items(leaves: dict[str, list[Any]], prefix: str, key: str, items: list[Any]) -> None:
    scalars = _scalar_fields(items)
    if not scalars and not any(isinstance(item, dict) for item in items):
        leaves.setdefault(key, []).extend(items)
        return
    for item in items:
        if isinstance(item, dict):
            _add_fields(leaves, prefix, {**item, **{name: None for name in scalars if name not in item}})
        else:
            leaves.setdefault(key, []).append(item)


def _scalar_fields(items: list[Any]) -> list[str]:
    """The fields of the objects among the items that hold scalars wherever they are there."""
    fields: dict[str, bool] = {}
    for item in items:
        if isinstance(item, dict):
            for name, value in item.items():
                fields[name] = fields.get(name, True) and not isinstance(value, dict | list)
    return [name for name, scalar in fields.items() if scalar]
