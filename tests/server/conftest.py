"""A scripted model, and gateways to it in threads of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from lmclient import Settings
from lmclient.server.serving import open_gateway
from lmclient.testing import FaultProvider, ScriptedModel
from lmclient.testing.hosting import running_in_thread

Serve = Callable[[Settings], str]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(cost={"input": "1000", "output": "2000"}) as scripted:
        yield scripted


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a gateway until the end of the test: its URL, ending in /v1."""
    with ExitStack() as running:
        yield lambda settings: running.enter_context(running_in_thread(open_gateway(settings)))


@pytest.fixture
def url(model: ScriptedModel, serve: Serve, tmp_path: Path) -> str:
    """A gateway with the scripted model behind all categories."""
    return serve(model.settings(tmp_path))


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as sdk:
        yield sdk


@pytest.fixture(scope="session")
def fault() -> Iterator[FaultProvider]:
    with FaultProvider.running() as provider:
        yield provider


@pytest.fixture
def fault_settings(tmp_path: Path, fault: FaultProvider) -> Callable[..., Settings]:
    """Settings whose category "m" is a scenario of the fault provider."""

    def settings(scenario: str, key: str, **values: Any) -> Settings:
        profiles = tmp_path / "profiles"
        profiles.mkdir(exist_ok=True)
        (profiles / "faulty.toml").write_text(
            f'provider = "openai-chat"\nmodel = "mock"\napi_key = "sk-upstream-secret"\n'
            f'url = "{fault.url(scenario, key=key)}"\n'
        )
        return Settings(
            profiles_dir=profiles,
            data_dir=tmp_path / "data",
            categories={"m": "faulty"},
            retry={"attempts": 1},
            **values,
        )

    return settings
