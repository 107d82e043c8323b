"""The profiles that a client can name, and the categories that point to them.

A profile is looked for in the profiles directory of the settings, then in that of the user, then
among those shipped with lmclient; a name found earlier hides the later ones. In one directory
`NAME.toml` hides `NAME.properties`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lmclient.errors import ConfigurationError, ProfileError
from lmclient.profiles.category import Category
from lmclient.profiles.model import ModelProfile
from lmclient.profiles.reading import SUFFIXES, ProfileFile
from lmclient.profiles.variables import Variables
from lmclient.profiles.wrong_values import known_names

if TYPE_CHECKING:
    from lmclient.settings import Settings

Target = str | Category | ModelProfile


class Profiles:
    """The profiles and categories of one client.

    Directories and files are read when first needed and then remembered, so that a call reads no
    file; an edited file is seen by the next `Profiles`, that is by a new client. What failed is not
    remembered. May be used from several threads.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._variables = Variables()
        self._files: dict[str, ProfileFile] | None = None
        self._labels: dict[str, str] | None = None
        self._loaded: dict[str, ModelProfile] = {}
        self._resolved: dict[str, tuple[tuple[ModelProfile, ...], str | None]] = {}

    @property
    def files(self) -> dict[str, ProfileFile]:
        """The files by the names of their profiles, sorted; nothing in them has been read."""
        if self._files is None:
            found: dict[str, ProfileFile] = {}
            for directory, shipped in _directories(self._settings):
                for file in _files_in(directory, shipped):
                    found.setdefault(file.name, file)
            self._files = dict(sorted(found.items()))
        return self._files

    @property
    def variables(self) -> Variables:
        """Where `${NAME}` in the files is looked up."""
        return self._variables

    def load(self, name: str) -> ModelProfile:
        """The profile called `name`.

        Raises `ConfigurationError` if there is none, `ProfileError` if it is not usable.
        """
        if (profile := self._loaded.get(name)) is None:
            if name not in self.files:
                expected = known_names(name, self.files)
                raise ConfigurationError(f"There is no profile {name!r}; expected {expected}.")
            profile = self._loaded[name] = self.files[name].load(self._variables)
        return profile

    def categories(self) -> dict[str, tuple[str, ...]]:
        """Every category and the profiles behind it: the first answers, the rest are fallbacks.

        What the settings say wins; then a profile of the user's that names the category itself
        (`category = "m"`, the first such profile by directory and name); then the default.
        Raises `ProfileError` if one of the user's profiles cannot be read.
        """
        categories = dict(self._settings.categories)
        spelling = {name.lower(): name for name in categories}
        for label, profile in self._labelled().items():
            name = spelling.get(label.lower(), label)
            if not self._settings.chose_category(name):
                categories[name] = profile
        return {
            name: (profiles,) if isinstance(profiles, str) else tuple(profiles)
            for name, profiles in categories.items()
        }

    def resolve(self, target: Target) -> tuple[list[ModelProfile], str | None]:
        """The profiles behind a target, fallbacks after the first, and the category it names.

        A string is a category, whatever its case, or else the exact name of a profile. Raises
        `ConfigurationError` for an unknown target, `ProfileError` for a profile not usable.
        """
        if isinstance(target, ModelProfile):
            return [target], None
        if not isinstance(target, str):
            raise ConfigurationError(
                f"Expected a category, a profile's name or a ModelProfile, found {type(target).__name__}."
            )
        if (resolved := self._resolved.get(target)) is None:
            resolved = self._resolved[target] = self._look_up(target)
        profiles, category = resolved
        return list(profiles), category

    def _look_up(self, target: str) -> tuple[tuple[ModelProfile, ...], str | None]:
        category = self._chosen(target)
        if category is not None:
            names = self._settings.categories[category]
            return self._behind(category, (names,) if isinstance(names, str) else tuple(names))
        try:
            categories = self.categories()
        except ProfileError:  # a broken profile is no reason to refuse another one
            if target not in self.files or target.lower() in self._settings.categories:
                raise
            categories = {}
        for name in categories:
            if name.lower() == target.lower():
                return self._behind(name, categories[name])
        if target in self.files:
            return (self.load(target),), None
        raise ConfigurationError(
            f"There is no category or profile {str(target)!r}; "
            f"expected a category, {known_names(target, categories)}, "
            f"or a profile, {known_names(target, self.files)}."
        )

    def _chosen(self, target: str) -> str | None:
        """The category if the settings themselves decide it, so that no file need be searched."""
        for name in self._settings.categories:
            if name.lower() == target.lower() and self._settings.chose_category(name):
                return name
        return None

    def _behind(self, category: str, names: tuple[str, ...]) -> tuple[tuple[ModelProfile, ...], str]:
        for name in names:
            if name not in self.files:
                raise ConfigurationError(
                    f"The category {category!r} points to the profile {name!r}, which does not exist; "
                    f"expected {known_names(name, self.files)}."
                )
        return tuple(self.load(name) for name in names), category

    def _labelled(self) -> dict[str, str]:
        """The categories that the user's own profiles name, and the first profile naming each."""
        if self._labels is None:
            labels: dict[str, str] = {}
            seen: set[str] = set()
            for directory, shipped in _directories(self._settings):
                for file in () if shipped else _files_in(directory, shipped):
                    label = None if file.name in seen else file.read().get("category")
                    seen.add(file.name)
                    if isinstance(label, str) and label and label.lower() not in map(str.lower, labels):
                        labels[label] = file.name
            self._labels = labels
        return self._labels


def resolve(target: Target, settings: Settings) -> tuple[list[ModelProfile], str | None]:
    """`Profiles(settings).resolve(target)`, for a single question: it reads the files anew."""
    return Profiles(settings).resolve(target)


def shipped_directory() -> Path:
    """The directory of the ready-made profiles: in the package, or beside it in a source checkout."""
    package = Path(__file__).parent
    inside = package / "shipped"
    return inside if inside.is_dir() else package.parent.parent / "profiles"


def user_directory() -> Path:
    """The directory of the user's profiles for all projects."""
    import platformdirs

    return platformdirs.user_config_path("lmclient") / "profiles"


def _directories(settings: Settings) -> Iterator[tuple[Path, bool]]:
    """The directories in the order of the search, and whether each is the shipped one."""
    shipped = shipped_directory()
    for directory in (settings.profiles_dir, user_directory()):
        # In a source checkout the working directory's profiles are the shipped ones.
        if directory.resolve() != shipped.resolve():
            yield directory, False
    yield shipped, True


def _files_in(directory: Path, shipped: bool) -> Iterator[ProfileFile]:
    for suffix in SUFFIXES:
        for path in sorted(directory.glob(f"*{suffix}")):
            if path.is_file():
                yield ProfileFile(path.stem, path, shipped)
