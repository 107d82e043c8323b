"""Clients, and profiles of the fault provider, in an empty working directory."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmclient import AsyncClient, Client, ModelProfile, Settings
from lmclient.testing import FaultProvider

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without profiles, `.env` and settings."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(settings) as opened:
        yield opened


@pytest.fixture
def sync_client(settings: Settings) -> Iterator[Client]:
    with Client(settings) as opened:
        yield opened


class Fault:
    """One scenario of the fault provider with counters of its own."""

    def __init__(self, provider: FaultProvider, scenario: str) -> None:
        self.key = f"test{next(_numbers)}"
        self.name = f"{scenario}~{self.key}"
        self.url = provider.url(scenario, key=self.key)
        self._provider = provider

    def profile(self, **values: Any) -> ModelProfile:
        """A profile that leads to it."""
        return ModelProfile(
            **{
                "provider": "openai-chat",
                "model": "mock",
                "url": self.url,
                "api_key": "sk-test-0123456789",
                **values,
            }
        )

    def count(self, counter: str) -> Any:
        """A counter of the scenario, None before its first request."""
        return self._provider.stats().get(self.name, {}).get(counter)


@pytest.fixture
def fault(fault_provider: FaultProvider) -> Callable[[str], Fault]:
    """`fault(scenario)`: each call has counters of its own."""
    return lambda scenario: Fault(fault_provider, scenario)
