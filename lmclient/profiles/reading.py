"""Profile files: finding what is wrong in one, and making a ModelProfile of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from lmclient.errors import ProfileError
from lmclient.profiles import properties
from lmclient.profiles.model import ModelProfile
from lmclient.profiles.variables import Unresolved, Variables, expand
from lmclient.profiles.wrong_values import WrongValue, known_names, wrong_values

SUFFIXES = (".toml", ".properties")
"""The kinds of profile files, the preferred one first."""


class Examination(NamedTuple):
    """What was found in a file: its `values`, and the `profile` if nothing is `unresolved` or `wrong`."""

    values: dict[str, Any]
    profile: ModelProfile | None
    unresolved: list[WrongValue]
    wrong: list[WrongValue]


@dataclass(frozen=True)
class ProfileFile:
    """A profile that was found: its `name`, its file, and whether it came with lmclient."""

    name: str
    path: Path
    shipped: bool = False

    def read(self) -> dict[str, Any]:
        """The values as they stand in the file, variables not replaced (they may hold a key).

        Raises `ProfileError` if the file cannot be read.
        """
        try:
            data = self.path.read_bytes()
            if self.path.suffix == ".properties":
                return properties.profile_values(_properties_text(data))
            return tomllib.loads(data.decode("utf-8-sig"))
        except OSError as error:
            raise self._unreadable(error.strerror or "it cannot be opened", "a readable file") from error
        except UnicodeDecodeError as error:
            raise self._unreadable("it is not UTF-8 text", "UTF-8 text") from error
        except tomllib.TOMLDecodeError as error:
            raise self._unreadable(str(error), "TOML") from error
        except ValueError as error:
            raise self._unreadable(str(error), "Java properties") from error

    def load(self, variables: Variables) -> ModelProfile:
        """The profile, its variables replaced.

        Raises `ProfileError` naming the file, the key and what was expected.
        """
        found = self.examine(self.read(), variables)
        if found.profile is not None:
            return found.profile
        first, *rest = (*found.unresolved, *found.wrong)
        more = f" (and {len(rest)} more)" if rest else ""
        raise ProfileError(
            f"Profile {self.name!r} ({self.path}): {first.message}{more}.",
            file=str(self.path),
            key=first.key,
            expected=first.expected,
        )

    def examine(self, values: dict[str, Any], variables: Variables) -> Examination:
        """The profile, or all that is wrong with it."""
        expanded, unresolved = expand(values, variables.get)
        missing = {one.key: self.as_written(_unresolved(one)) for one in unresolved}
        wrong: list[WrongValue] = []
        profile = None
        if "name" in expanded:
            expected = "no name, for the file's name is the profile's"
            wrong.append(WrongValue("name", expected, f"name: expected {expected}"))
        try:
            profile = _validated({**expanded, "name": self.name})
        except ValidationError as error:
            # What an unresolved variable leaves out is not missing, too.
            found = wrong_values(error, ModelProfile)
            wrong += [self.as_written(one) for one in found if one.key not in missing]
        if missing or wrong:
            profile = None
        return Examination(expanded, profile, list(missing.values()), wrong)

    def as_written(self, wrong: WrongValue) -> WrongValue:
        """The problem under the key that stands in the file."""
        if self.path.suffix != ".properties":
            return wrong
        name = properties.property_name(wrong.key)
        if "is not known" in wrong.message:
            expected = known_names(name, properties.KEYS)
            return WrongValue(name, expected, f"the key {name!r} is not known; expected {expected}")
        return WrongValue(name, wrong.expected, wrong.message.replace(wrong.key, name, 1))

    def _unreadable(self, reason: str, expected: str) -> ProfileError:
        return ProfileError(
            f"Profile {self.name!r} ({self.path}) cannot be read: {reason}; expected {expected}.",
            file=str(self.path),
            expected=expected,
        )


def _properties_text(data: bytes) -> str:
    # UTF-8 since Java 9, before that ISO-8859-1, which any bytes are.
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def _unresolved(missing: Unresolved) -> WrongValue:
    expected = (
        f"the variable {missing.variable} in the environment or in .env, written ${{{missing.variable}}}"
    )
    return WrongValue(
        missing.key, expected, f"{missing.key}: {missing.variable} is not set; expected {expected}"
    )


def _validated(values: dict[str, Any]) -> ModelProfile:
    try:
        return ModelProfile(**values)
    except ProfileError as error:
        if isinstance(error.__cause__, ValidationError):
            raise error.__cause__ from None
        raise
