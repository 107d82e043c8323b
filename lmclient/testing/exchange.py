"""Exchanges: a request and the response it got, as `lmclient.testing.replay` describes and serves them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from lmclient.errors import ConfigurationError


class RecordedResponse(msgspec.Struct, frozen=True):
    """The response of an exchange; `timing` is empty where it was not recorded."""

    body: str
    status: int = 200
    content_type: str = "application/json"
    retry_after: str | None = None
    timing: list[tuple[float, int]] = []


class Exchange(msgspec.Struct, frozen=True):
    """What is served, and under which path."""

    path: str
    response: RecordedResponse
    name: str = ""

    @property
    def streamed(self) -> bool:
        """Whether the body is a stream of server-sent events."""
        return "text/event-stream" in self.response.content_type

    def answers(self, path: str) -> bool:
        """Whether `path`, without the name in front, ends like the recorded one."""
        return unquote(path).rsplit("/", 1)[-1] == self.path.rsplit("/", 1)[-1]

    def parts(self) -> Iterator[tuple[float, bytes]]:
        """The body in the recorded pieces, each with its time in seconds since the response began.

        Without timing that is the whole body at 0. Bytes beyond the recorded pieces follow the last one.
        """
        body = self.response.body.encode()
        position, seconds = 0, 0.0
        for seconds, size in self.response.timing:
            yield seconds, body[position : position + size]
            position += size
        yield seconds, body[position:]


Exchanges = str | Path | Iterable[Exchange | Mapping[str, Any]] | Mapping[str, Exchange | Mapping[str, Any]]
"""A directory of exchange files, or exchanges in code: a list, or a dict by name."""


def load_exchanges(exchanges: Exchanges) -> dict[str, Exchange]:
    """The exchanges by name.

    Raises ConfigurationError if there is no such directory, or for an exchange that lacks a name, a
    path or a body, or has a value of the wrong type.
    """
    if isinstance(exchanges, str | Path):
        directory = Path(exchanges)
        if not directory.is_dir():
            raise ConfigurationError(f"There is no directory {str(directory)!r} with exchange files.")
        named = [_from_file(file) for file in sorted(directory.glob("*.json"))]
    elif isinstance(exchanges, Mapping):
        named = [_from_value(value, name) for name, value in exchanges.items()]
    else:
        named = [_from_value(value) for value in exchanges]
    return {exchange.name: exchange for exchange in named}


def _from_file(file: Path) -> Exchange:
    try:
        exchange = msgspec.json.decode(file.read_bytes(), type=Exchange)
    except msgspec.DecodeError as problem:
        raise ConfigurationError(f"The exchange file {str(file)!r} cannot be used: {problem}.") from problem
    return _named(exchange, file.stem)


def _from_value(value: Exchange | Mapping[str, Any], name: str = "") -> Exchange:
    if isinstance(value, Exchange):
        return _named(value, name)
    try:
        exchange = msgspec.convert(value, Exchange)
    except msgspec.ValidationError as problem:
        which = name or value.get("name", "without a name")
        raise ConfigurationError(f"The exchange {which!r} cannot be used: {problem}.") from problem
    return _named(exchange, name)


def _named(exchange: Exchange, name: str) -> Exchange:
    """The exchange under its own name, or else under this one."""
    if not (exchange.name or name):
        raise ConfigurationError(f"The exchange for {exchange.path!r} has no name; give it a 'name'.")
    return exchange if exchange.name else msgspec.structs.replace(exchange, name=name)
