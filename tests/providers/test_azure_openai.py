"""`azure-openai`: which URL is called, how it is signed, and what Azure adds to its answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import azure.identity
import openai
import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from lmclient import (
    AsyncClient,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    FinishReason,
    ModelProfile,
    Settings,
)
from lmclient.testing import ReplayProvider

RESOURCE = "https://name.openai.azure.com"
SHARED = Path(__file__).parents[2].parent / "shared" / "exchanges"
RECORDED = sorted(SHARED.glob("openai-chat.azure.*.json"))

FILTERS = {"hate": {"filtered": False, "severity": "safe"}}
PROMPT_FILTERS = [{"prompt_index": 0, "content_filter_results": FILTERS}]
ANSWER = {
    "path": "/openai/v1/chat/completions",
    "response": {
        "body": json.dumps(
            {
                "id": "c",
                "model": "gpt",
                "prompt_filter_results": PROMPT_FILTERS,
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "content_filter_results": FILTERS,
                        "message": {"role": "assistant", "content": "Paris."},
                    }
                ],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            }
        )
    },
}
EVENTS: list[dict[str, Any]] = [
    {"id": "", "model": "", "choices": [], "prompt_filter_results": PROMPT_FILTERS},
    {"id": "c", "model": "gpt", "choices": [{"index": 0, "delta": {"content": "Par"}}]},
    {"id": "", "model": "", "choices": [{"index": 0, "content_filter_results": FILTERS}]},
    {"id": "c", "model": "gpt", "choices": [{"index": 0, "delta": {"content": "is."}}]},
    {"id": "c", "model": "gpt", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]
STREAM = {
    "path": "/openai/v1/chat/completions",
    "response": {
        "content_type": "text/event-stream",
        "body": "".join(f"data: {json.dumps(event)}\n\n" for event in EVENTS) + "data: [DONE]\n\n",
    },
}
REFUSAL = {
    "path": "/openai/v1/chat/completions",
    "response": {
        "status": 400,
        "body": json.dumps(
            {
                "error": {
                    "message": "The response was filtered.",
                    "code": "content_filter",
                    "status": 400,
                    "innererror": {"code": "ResponsibleAIPolicyViolation"},
                }
            }
        ),
    },
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")


@pytest.fixture
async def client(settings: Settings) -> AsyncClient:
    return AsyncClient(settings, interceptors=[])


def profile(url: str, **values: Any) -> ModelProfile:
    return ModelProfile(
        **{"provider": "azure-openai", "model": "gpt", "url": url, "api_key": "azure-key", **values}
    )


V1 = f"{RESOURCE}/openai/v1/chat/completions"
DEPLOYED = f"{RESOURCE}/openai/deployments/gpt/chat/completions"


@pytest.mark.parametrize(
    ("url", "query", "expected"),
    [
        (RESOURCE, {}, V1),
        (f"{RESOURCE}/", {}, V1),
        (RESOURCE, {"api-version": "preview"}, f"{V1}?api-version=preview"),
        (f"{RESOURCE}/openai", {}, V1),
        (f"{RESOURCE}/openai/v1", {}, V1),
        (f"{RESOURCE}/openai/v1/", {}, V1),
        (V1, {}, V1),
        (
            f"{RESOURCE}/openai/deployments/gpt",
            {"api-version": "2024-10-21"},
            f"{DEPLOYED}?api-version=2024-10-21",
        ),
        (f"{DEPLOYED}?api-version=2024-10-21", {}, f"{DEPLOYED}?api-version=2024-10-21"),
        (f"{RESOURCE}/openai", {"api-version": "2024-10-21"}, f"{DEPLOYED}?api-version=2024-10-21"),
    ],
)
async def test_the_url_of_a_call(client: AsyncClient, url: str, query: dict[str, str], expected: str) -> None:
    assert client.preview(profile(url, extra_query=query), "Hello").url == expected


@pytest.mark.parametrize("version", [{}, {"api-version": "2024-05-01-preview"}], ids=["plain", "dated"])
async def test_a_profile_of_azure_ai_moves_to_the_v1_path_by_one_word(
    client: AsyncClient, version: dict[str, str]
) -> None:
    moved = profile("https://name.services.ai.azure.com/models", extra_query=version)
    expected = "https://name.services.ai.azure.com/openai/v1/chat/completions"
    assert client.preview(moved, "Hello").url == expected


async def test_the_key_goes_into_the_header_api_key(client: AsyncClient) -> None:
    headers = client.preview(profile(RESOURCE), "Hello").headers
    assert (headers["api-key"], "authorization" in headers) == ("azure-key", False)


async def test_the_models_of_a_deployment_path_are_those_of_its_resource(client: AsyncClient) -> None:
    exchange = {"path": "/openai/models", "response": {"body": '{"data": [{"id": "gpt-5"}]}'}}
    async with ReplayProvider.open({"x": exchange}) as server:
        url = server.url("x", "openai/deployments/gpt")
        models = await client.models(profile(url, extra_query={"api-version": "2024-10-21"}))
        sent = server.requests["x"][-1]
    assert (models, sent["path"], sent["query"]) == (
        ["gpt-5"],
        "/x/openai/models",
        "api-version=2024-10-21",
    )


async def test_filter_results_are_no_part_of_an_answer(client: AsyncClient) -> None:
    async with ReplayProvider.open({"x": ANSWER}) as server:
        completion = await client.complete(profile(server.url("x", "openai/v1")), "Hello")
    assert (completion.text, completion.finish_reason) == ("Paris.", FinishReason.STOP)


async def test_filter_results_are_no_part_of_a_stream(client: AsyncClient) -> None:
    async with (
        ReplayProvider.open({"x": STREAM}, split=5) as server,
        client.stream(profile(server.url("x", "openai/v1")), "Hello") as stream,
    ):
        texts = [chunk.text async for chunk in stream]
    completion = stream.completion
    assert (texts, completion.id, completion.model) == (["Par", "is."], "c", "gpt")


async def test_a_filtered_prompt_is_a_content_filter_error(client: AsyncClient) -> None:
    async with ReplayProvider.open({"x": REFUSAL}) as server:
        with pytest.raises(ContentFilterError) as caught:
            await client.complete(profile(server.url("x", "openai/v1")), "Hello")
    assert caught.value.code == "content_filter"


@pytest.mark.skipif(not RECORDED, reason="there is no folder with recorded exchanges beside the checkout")
@pytest.mark.parametrize("file", RECORDED, ids=[file.stem for file in RECORDED])
async def test_recorded_answers_of_azure(client: AsyncClient, file: Path) -> None:
    exchange = json.loads(file.read_bytes())  # noqa: ASYNC240  # a small file
    async with ReplayProvider.open([exchange]) as server:
        prefix = exchange["path"].removesuffix("/chat/completions").lstrip("/")
        completion = await client.complete(profile(server.url(exchange["name"], prefix)), "Hello")
    assert completion.text == exchange["expected"]["text"]


class Credential:
    """Stands in for azure-identity's, which looks for one on this machine."""

    def get_token(self, *scopes: str, **options: object) -> AccessToken:
        assert scopes == ("https://cognitiveservices.azure.com/.default",)
        return AccessToken("entra-token", 2**40)


class NoCredential:
    def get_token(self, *scopes: str, **options: object) -> AccessToken:
        raise ClientAuthenticationError("No credential in this chain provided a token.\nDetails: ...")


async def test_without_a_key_a_token_of_entra_id_signs_the_call(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", Credential)
    async with ReplayProvider.open({"x": STREAM}) as server:
        async with client.stream(profile(server.url("x", "openai/v1"), api_key=None), "Hello") as stream:
            text = "".join([chunk.text async for chunk in stream])
        sent = server.requests["x"][-1]
    assert (text, "authorization" in sent["headers"], "api-key" in sent["headers"]) == ("Paris.", True, False)


async def test_no_token_is_an_authentication_error_that_says_what_to_do(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", NoCredential)
    with pytest.raises(AuthenticationError, match=r"No credential in this chain.*api_key"):
        await client.complete(profile("http://127.0.0.1:9/openai/v1", api_key=None), "Hello")


async def test_neither_key_nor_azure_identity_is_a_configuration_error(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(ConfigurationError, match="pip install azure-identity"):
        await client.complete(profile(RESOURCE, api_key=None), "Hello")


@pytest.fixture
def over(settings: Settings) -> Callable[[Any], AsyncClient]:
    return lambda transport: AsyncClient(settings, interceptors=[], transport=transport)


async def test_the_users_azure_client_signs_with_its_own_tokens(over: Callable[[Any], AsyncClient]) -> None:
    async def token() -> str:
        return "users-token"

    exchange = {**ANSWER, "path": "/openai/deployments/gpt/chat/completions"}
    async with ReplayProvider.open({"x": exchange}) as server:
        async with openai.AsyncAzureOpenAI(
            azure_endpoint=server.url("x"), api_version="2024-10-21", azure_ad_token_provider=token
        ) as own:
            completion = await over(own).complete(profile("", api_key=None), "Hello")
        sent = server.requests["x"][-1]
    assert (completion.text, sent["path"], sent["query"], "authorization" in sent["headers"]) == (
        "Paris.",
        "/x/openai/deployments/gpt/chat/completions",
        "api-version=2024-10-21",
        True,
    )


async def test_the_profiles_api_version_wins_over_that_of_the_users_client(
    over: Callable[[Any], AsyncClient],
) -> None:
    async with ReplayProvider.open({"x": ANSWER}) as server:
        url = server.url("x", "openai/deployments/gpt")
        async with openai.AsyncAzureOpenAI(base_url=url, api_version="old", api_key="k") as own:
            await over(own).complete(profile(url, extra_query={"api-version": "new"}), "Hello")
        sent = server.requests["x"][-1]
    assert sent["query"] == "api-version=new"
