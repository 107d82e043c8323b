"""Profiles as they may be shown: with their keys hidden, and also where a key is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import SecretStr

from lmclient.errors import ProfileError
from lmclient.profiles.directory import Profiles
from lmclient.profiles.model import ModelProfile
from lmclient.profiles.reading import ProfileFile
from lmclient.profiles.secrets import HIDDEN, is_secret_name


class Shown(NamedTuple):
    """A profile to be shown, its file, and the variables that are `missing` for its keys, if any."""

    profile: ModelProfile
    file: ProfileFile
    missing: list[str]


def find(profiles: Profiles, name: str) -> Shown:
    """The profile of this name, or the first one of the category.

    Raises `ConfigurationError` if there is none, `ProfileError` if more than a key is wrong with it.
    """
    if name not in profiles.files:
        name = profiles.resolve(name)[0][0].name
    file = profiles.files[name]
    try:
        return Shown(profiles.load(name), file, [])
    except ProfileError:
        found = file.examine(file.read(), profiles.variables)
        if found.wrong or not all(is_secret_name(one.key.rpartition(".")[2]) for one in found.unresolved):
            raise
        missing = [one.message for one in found.unresolved]
        return Shown(ModelProfile(**{**found.values, "name": name}), file, missing)


def hidden(value: Any) -> Any:
    """The value with what its names call a secret replaced, at any depth."""
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, Mapping):
        return {k: HIDDEN if v and is_secret_name(k) else hidden(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [hidden(item) for item in value]
    return value
