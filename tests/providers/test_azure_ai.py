"""`azure-ai`: through the pipeline of azure-ai-inference's own client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import azure.identity
import pytest
from azure.ai.inference.aio import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential

from lmclient import AsyncClient, ConnectError, ConnectTimeoutError, ModelProfile, Settings
from lmclient.core.http import HttpRequest
from lmclient.testing import FaultProvider, ReplayProvider
from lmclient.transports.base import HttpResponse

ANSWER = {
    "path": "/models/chat/completions",
    "response": {
        "body": json.dumps(
            {
                "id": "c",
                "model": "phi",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Paris."}}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            }
        )
    },
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(settings, interceptors=[]) as opened:
        yield opened


@pytest.fixture
async def server() -> AsyncIterator[ReplayProvider]:
    async with ReplayProvider.open({"x": ANSWER}) as opened:
        yield opened


class Unreachable:
    """A transport to a server that does not accept in time."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        raise ConnectTimeoutError("No connection within 1 s.")

    async def aclose(self) -> None:
        return None


def profile(url: str, **values: Any) -> ModelProfile:
    return ModelProfile(
        **{"provider": "azure-ai", "model": "phi", "url": url, "api_key": "azure-key", **values}
    )


async def test_the_pipeline_signs_with_the_key_in_both_headers(
    client: AsyncClient, server: ReplayProvider
) -> None:
    completion = await client.complete(profile(server.url("x", "models")), "Hello")
    headers = server.requests["x"][-1]["headers"]
    signed = {"authorization", "api-key"} <= {*headers}
    assert (completion.text, signed, "x-ms-client-request-id" in headers) == ("Paris.", True, True)


async def test_the_api_version_is_the_services_own(client: AsyncClient, server: ReplayProvider) -> None:
    await client.complete(profile(server.url("x", "models")), "Hello")
    assert server.requests["x"][-1]["query"] == "api-version=2024-05-01-preview"


@pytest.mark.parametrize("where", ["url", "extra_query"])
async def test_the_api_version_of_the_profile_is_kept(
    client: AsyncClient, server: ReplayProvider, where: str
) -> None:
    url, query = server.url("x", "models"), {"api-version": "2025-01-01"}
    given = profile(f"{url}?api-version=2025-01-01") if where == "url" else profile(url, extra_query=query)
    await client.complete(given, "Hello")
    assert server.requests["x"][-1]["query"] == "api-version=2025-01-01"


async def test_a_url_without_a_path_gets_the_path_of_the_models(client: AsyncClient) -> None:
    url = client.preview(profile("https://name.services.ai.azure.com"), "Hello").url
    assert url.startswith("https://name.services.ai.azure.com/models/chat/completions?")


async def test_parameters_beyond_the_services_schema_pass_through(
    client: AsyncClient, server: ReplayProvider
) -> None:
    await client.complete(profile(server.url("x", "models")), "Hello")
    assert server.requests["x"][-1]["headers"]["extra-parameters"] == "pass-through"


async def test_a_client_of_the_users_is_used_as_it_is(settings: Settings, server: ReplayProvider) -> None:
    async with (
        ChatCompletionsClient(server.url("x", "models"), AzureKeyCredential("k")) as own,
        AsyncClient(settings, interceptors=[], transport=own) as client,
    ):
        completion = await client.complete(profile("", api_key=None), "Hello")
    sent = server.requests["x"][-1]
    assert (completion.text, sent["query"]) == ("Paris.", "api-version=2024-05-01-preview")


async def test_a_token_is_not_sent_over_plain_http(
    client: AsyncClient, server: ReplayProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Credential:
        def get_token(self, *scopes: str, **options: object) -> None:
            pytest.fail("a token was asked for")

    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", Credential)
    with pytest.raises(ConnectError, match="https"):
        await client.complete(profile(server.url("x", "models"), api_key=None), "Hello")


async def test_errors_of_the_carrying_transport_pass_the_pipeline_unchanged(settings: Settings) -> None:
    async with AsyncClient(settings, interceptors=[], transport=Unreachable()) as client:
        with pytest.raises(ConnectTimeoutError, match="within 1 s"):
            await client.complete(profile("http://127.0.0.1:9/models"), "Hello")


async def test_the_pipeline_retries_nothing(client: AsyncClient) -> None:
    async with FaultProvider.open() as provider:
        with pytest.raises(Exception, match="429"):
            await client.complete(profile(provider.url("rate_limited_once")), "Hello")
        assert provider.stats()["rate_limited_once"]["requests"] == 1


async def test_the_pipeline_sends_no_key_to_where_another_server_redirects(client: AsyncClient) -> None:
    async with FaultProvider.open() as provider:
        await client.complete(profile(provider.url("cross_host_redirect")), "Hello")
        assert provider.stats()["ok"]["authorization"] == [False]


async def test_streams_through_the_pipeline(client: AsyncClient) -> None:
    async with (
        FaultProvider.open() as provider,
        client.stream(profile(provider.url("hang_mid_stream")), "Hello") as stream,
    ):
        first = await anext(aiter(stream))
    assert first.text == "The"
