"""Every test here has a working directory, a home and an environment of its own."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is the working directory; nothing else of the machine is seen."""
    for name in list(os.environ):
        if name.startswith("LMCLIENT_") or name.endswith(("_API_KEY", "_ENDPOINT")):
            monkeypatch.delenv(name)
    directory = tmp_path / "project"
    (directory / "profiles").mkdir(parents=True)
    monkeypatch.chdir(directory)
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_: tmp_path / "config")
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_: tmp_path / "data")
    return directory


@pytest.fixture
def user_profiles(tmp_path: Path) -> Path:
    """The directory of the user's own profiles."""
    directory = tmp_path / "config" / "profiles"
    directory.mkdir(parents=True)
    return directory
