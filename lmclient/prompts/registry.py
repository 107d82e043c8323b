"""Prompt formats by name: those built in, and those that others add."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from lmclient.errors import ConfigurationError
from lmclient.prompts.builtin import FORMATS
from lmclient.prompts.format import PromptFormat

ENTRY_POINTS = "lmclient.prompt_formats"

_formats: dict[str, PromptFormat] = {}


def register_prompt_format(format: PromptFormat) -> None:
    """Makes `format` known under its name, in place of one that has the name already.

    A package does the same without a call by an entry point of the group `lmclient.prompt_formats`
    that refers to a `PromptFormat`.
    """
    _known()[format.name] = format


def get(name: str) -> PromptFormat:
    """The prompt format of a name, or of a Hugging Face chat template in a file `….jinja`.

    Raises `ConfigurationError` if there is no such format or file, `BadRequestError` if the
    template is not valid.
    """
    if name.endswith(".jinja"):
        from lmclient.prompts.template import from_template

        return from_template(Path(name))
    try:
        return _known()[name]
    except KeyError:
        known = ", ".join(sorted(_known()))
        raise ConfigurationError(
            f"There is no prompt format {name!r}; use one of {known}, or the path of a .jinja file."
        ) from None


def names() -> list[str]:
    """The names of all prompt formats, sorted."""
    return sorted(_known())


def _known() -> dict[str, PromptFormat]:
    if not _formats:
        added = {entry.name: _loaded(entry) for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)}
        _formats.update({format.name: format for format in FORMATS} | added)
    return _formats


def _loaded(entry: importlib.metadata.EntryPoint) -> PromptFormat:
    try:
        format = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"The prompt format {entry.name!r} could not be loaded from {entry.value}: {error}; "
            "reinstall or remove its package."
        ) from error
    if not isinstance(format, PromptFormat):
        raise ConfigurationError(
            f"The entry point {entry.name!r} ({entry.value}) is {type(format).__name__}, "
            "a PromptFormat is expected."
        )
    return format
