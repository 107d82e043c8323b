"""Clients as users hold them, each made for one server and closed after the test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from azure.ai.inference.aio import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential

from lmclient import AsyncClient, ModelProfile, Settings
from lmclient.testing import FaultProvider

OWN_KEY = "sk-of-the-users-client"


def httpx2_client(url: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {OWN_KEY}"})


def openai_client(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, api_key=OWN_KEY)


def azure_openai_client(url: str) -> openai.AsyncAzureOpenAI:
    return openai.AsyncAzureOpenAI(base_url=url, api_key=OWN_KEY, api_version="2024-10-21")


def azure_client(url: str) -> ChatCompletionsClient:
    return ChatCompletionsClient(url, AzureKeyCredential(OWN_KEY))


MAKERS: dict[str, Callable[[str], Any]] = {
    "httpx2": httpx2_client,
    "openai": openai_client,
    "azure-openai": azure_openai_client,
    "azure": azure_client,
}


@pytest.fixture(scope="session")
def fault_provider() -> Iterator[FaultProvider]:
    with FaultProvider.running() as provider:
        yield provider


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")


@pytest.fixture(params=list(MAKERS))
def kind(request: pytest.FixtureRequest) -> str:
    """Which client the user holds; every test runs with each."""
    return str(request.param)


@pytest.fixture
async def held() -> AsyncIterator[Callable[[str, str], Any]]:
    """`held(kind, url)`: a client of the user's for this server."""
    async with AsyncExitStack() as stack:

        def hold(kind: str, url: str) -> Any:
            client = MAKERS[kind](url)
            close: Callable[[], Awaitable[None]] = getattr(client, "aclose", None) or client.close
            stack.push_async_callback(close)
            return client

        yield hold


@pytest.fixture
async def client_over(
    settings: Settings, held: Callable[[str, str], Any]
) -> AsyncIterator[Callable[..., AsyncClient]]:
    """`client_over(kind, url)`: an AsyncClient without interceptors; without a kind over aiohttp."""
    async with AsyncExitStack() as stack:

        def make(kind: str | None, url: str) -> AsyncClient:
            transport = None if kind is None else held(kind, url)
            client = AsyncClient(settings, interceptors=[], transport=transport)
            stack.push_async_callback(client.aclose)
            return client

        yield make


_numbers = itertools.count(1)


class Fault:
    """One scenario of the fault provider, with counters of its own."""

    def __init__(self, provider: FaultProvider, scenario: str) -> None:
        self.key = f"transport{next(_numbers)}"
        self.name = f"{scenario}~{self.key}"
        self.url = provider.url(scenario, key=self.key)
        self._provider = provider

    def profile(self, **values: Any) -> ModelProfile:
        return ModelProfile(**{"provider": "openai-chat", "model": "mock", "url": self.url, **values})

    def count(self, counter: str, name: str = "") -> Any:
        """A counter of this scenario, or of another one with the same key; None before a request."""
        return self._provider.stats().get(f"{name}~{self.key}" if name else self.name, {}).get(counter)


@pytest.fixture
def fault(fault_provider: FaultProvider) -> Callable[[str], Fault]:
    return lambda scenario: Fault(fault_provider, scenario)
