"""What `transport=` takes, and what it says to the rest."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx2
import openai
import pytest
from azure.ai.inference import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential

from lmclient import AsyncClient, ConfigurationError, Settings
from lmclient.transports.adapting import adapt
from lmclient.transports.aiohttp import AiohttpTransport

SYNCHRONOUS = [
    (httpx2.Client, "httpx2.AsyncClient"),
    (lambda: openai.OpenAI(api_key="k"), "openai.AsyncOpenAI"),
    (
        lambda: openai.AzureOpenAI(api_key="k", api_version="v", base_url="http://x"),
        "openai.AsyncAzureOpenAI",
    ),
    (
        lambda: ChatCompletionsClient("http://x", AzureKeyCredential("k")),
        "azure.ai.inference.aio.ChatCompletionsClient",
    ),
]


@pytest.mark.parametrize(("make", "instead"), SYNCHRONOUS, ids=[name for _, name in SYNCHRONOUS])
def test_a_synchronous_client_is_refused_with_the_one_to_use(make: Any, instead: str) -> None:
    with make() as given, pytest.raises(ConfigurationError, match=instead):
        AsyncClient(Settings(), transport=given)


def test_anything_else_is_refused_with_what_is_expected() -> None:
    with pytest.raises(ConfigurationError, match=r"type int .* httpx2\.AsyncClient"):
        AsyncClient(Settings(), transport=5)  # type: ignore[arg-type]  # the mistake under test


def test_a_transport_is_used_as_it_is() -> None:
    transport = AiohttpTransport()
    assert adapt(transport) is transport


async def test_a_subclass_of_the_users_is_known_by_its_base() -> None:
    class Mine(httpx2.AsyncClient):
        pass

    async with Mine(base_url="http://mine/v1") as given:
        assert adapt(given).base_url == "http://mine/v1/"  # type: ignore[attr-defined]  # Httpx2Transport


def test_no_sdk_is_loaded_to_look_at_a_transport() -> None:
    code = (
        "import sys; from lmclient.transports.adapting import adapt\n"
        "class T:\n"
        "    async def send(self, request): ...\n"
        "    async def aclose(self): ...\n"
        "adapt(T()); assert not {'openai', 'httpx2', 'azure.core', 'aiohttp'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
