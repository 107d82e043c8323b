"""`lmclient profiles check`: everything that is wrong with any profile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmclient.errors import ProfileError
from lmclient.profiles.directory import Profiles
from lmclient.profiles.reading import Examination, ProfileFile
from lmclient.profiles.wrong_values import WrongValue, known_names

if TYPE_CHECKING:
    from lmclient.settings import Settings


class Problem(NamedTuple):
    """Something wrong: where (`file`, and `key` where one is to blame), and what was `expected`.

    `message` is a sentence naming all of them. The file of a wrong category is "settings".
    """

    file: str
    key: str | None
    message: str
    expected: str


class KnownNames(NamedTuple):
    """The names that exist, under the keys of a profile that refer to them."""

    provider: Collection[str]
    prompt_format: Collection[str]
    tokenizer: Collection[str]
    token_encoding: Collection[str]

    def unknown(self, values: Mapping[str, Any], file: ProfileFile) -> Iterator[WrongValue]:
        """The names among the `values` of a file that do not exist."""
        for key, names in self._asdict().items():
            value = values.get(key)
            if not isinstance(value, str) or not value or value in names:
                continue
            if key == "prompt_format" and value.endswith(".jinja"):
                continue  # a file, not a name
            if key == "token_encoding" and values.get("tokenizer") not in (None, "", "tiktoken"):
                continue  # another tokenizer has encodings of its own, or none
            expected = known_names(value, sorted(names))
            yield file.as_written(WrongValue(key, expected, f"{key}: expected {expected}, found {value!r}"))


def check(settings: Settings, known: KnownNames) -> list[Problem]:
    """Every problem of every profile and category; empty if all is well.

    A variable that a shipped profile needs may be missing as long as no category points to that
    profile.
    """
    profiles = Profiles(settings)
    problems: list[Problem] = []
    examined: dict[ProfileFile, Examination] = {}
    for file in profiles.files.values():
        try:
            examined[file] = file.examine(file.read(), profiles.variables)
        except ProfileError as error:
            problems.append(Problem(str(file.path), error.key, str(error), error.expected or ""))
    # With an unreadable file, what the files say about categories is unknown, but already reported.
    categories = {} if problems else profiles.categories()
    needed = {name for names in categories.values() for name in names}
    for file, found in examined.items():
        wrong = [*found.wrong, *known.unknown(found.values, file)]
        if not file.shipped or file.name in needed:
            wrong = [*found.unresolved, *wrong]
        problems += [
            Problem(str(file.path), one.key, f"{file.path}: {one.message}.", one.expected) for one in wrong
        ]
    return problems + _wrong_categories(categories, profiles)


def _wrong_categories(categories: Mapping[str, Sequence[str]], profiles: Profiles) -> list[Problem]:
    problems = []
    for category, names in categories.items():
        for name in names:
            if name not in profiles.files:
                expected = f"a profile, {known_names(name, profiles.files)}"
                message = f"Settings: categories.{category}: expected {expected}, found {name!r}."
                problems.append(Problem("settings", f"categories.{category}", message, expected))
    return problems
