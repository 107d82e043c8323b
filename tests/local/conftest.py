"""The real SmolLM2 behind llama.cpp's server, and clients of it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from lmclient import AsyncClient, ModelProfile, Settings
from lmclient.providers.local import server, weights

ProfileOf = Callable[..., ModelProfile]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Where the model's weights are; fetched once per machine."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    named = os.environ.get("LMCLIENT_TEST_MODELS")
    directory = Path(named) if named else weights.default_data_dir()
    weights.pull("smollm2", directory)
    return directory


@pytest.fixture(scope="session")
def server_url(data_dir: Path) -> str:
    """The server of the model, shared by all tests of the process."""
    return server.start(weights.resolve("smollm2", data_dir))


@pytest.fixture
async def client(data_dir: Path, tmp_path: Path) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(Settings(data_dir=data_dir, profiles_dir=tmp_path)) as opened:
        yield opened


@pytest.fixture
def profile(server_url: str) -> ProfileOf:
    """`profile(provider, prompt_format)`: deterministic, short answers."""

    def make(provider: str, prompt_format: str = "", **values: Any) -> ModelProfile:
        base: dict[str, Any] = {"temperature": 0, "max_tokens": 16, "tokenizer": "llama-server"}
        if provider != "llama-cpp":
            # llama.cpp closes each connection after a stream; so no call finds a closed one.
            base |= {"url": f"{server_url}/v1", "headers": {"connection": "close"}}
        return ModelProfile(
            **{"provider": provider, "model": "smollm2", "prompt_format": prompt_format, **base, **values}
        )

    return make
