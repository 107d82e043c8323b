"""The real SmolLM2, fetched once per machine, and one server for all tests of a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmclient.providers.local import server, weights


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    named = os.environ.get("LMCLIENT_TEST_MODELS")
    return weights.pull("smollm2", Path(named) if named else weights.default_data_dir())


@pytest.fixture(scope="session")
def local_url(smollm2_file: Path) -> str:
    return server.start(smollm2_file)
