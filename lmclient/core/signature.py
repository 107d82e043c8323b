"""Functions as tools: what a model is told about one, and a model's arguments for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def describe(function: Callable[..., object]) -> tuple[str, str, Json]:
    """Name, description and the JSON schema of the parameters of a function.

    Raises `TypeError` for a parameter that JSON cannot carry.
    """
    raise TypeError("not yet")


def bind_arguments(function: Callable[..., object], arguments: Json) -> Json:
    """A model's JSON arguments as keyword arguments for the function.

    Raises `ProtocolError`, whose message may be sent back to the model, if they do not fit.
    """
    raise TypeError("not yet")
