"""`openrouter`: what a profile leaves out comes from the list of models; a call never needs it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lmclient import AsyncClient, ModelProfile, Settings
from lmclient.providers import openrouter
from lmclient.providers.base import ProviderContext
from lmclient.providers.openrouter import OpenRouterProvider, read_models
from lmclient.transports.aiohttp import AiohttpTransport

MODELS = [
    {
        "id": "vendor/big",
        "context_length": 400000,
        "pricing": {
            "prompt": "0.00000125",
            "completion": "0.00001",
            "input_cache_read": "0.000000125",
            "input_cache_write": "0.0000015625",
            "internal_reasoning": "0",
            "request": "0",
        },
        "supported_parameters": ["max_tokens", "tools", "tool_choice"],
    },
    {
        "id": "vendor/plain",
        "context_length": 8192,
        "pricing": {"prompt": "0", "completion": "0"},
        "supported_parameters": ["max_tokens"],
    },
    {"id": "openrouter/auto", "context_length": 2000000, "pricing": {"prompt": "-1", "completion": "-1"}},
    {"id": "odd/one", "context_length": None, "pricing": {"prompt": "cheap"}, "supported_parameters": None},
    "no model",
]


class Server:
    """OpenRouter in small: a list of models and one answer, each counted."""

    def __init__(self) -> None:
        self.asked = {"models": 0, "chat/completions": 0}
        self.models: Any = {"data": MODELS}
        self.models_status = 200
        self.usage: dict[str, Any] = {}
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        endpoint = request.path.removeprefix("/api/v1/")
        self.asked[endpoint] += 1
        if endpoint == "models":
            return web.json_response(self.models, status=self.models_status)
        message = {"role": "assistant", "content": "Paris."}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, **self.usage}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"id": "gen-1", "model": "m", "choices": [choice], "usage": usage})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    serving = Server()
    app = web.Application()
    app.router.add_route("*", "/api/v1/{endpoint:.*}", serving.answer)
    async with TestServer(app) as running:
        serving.url = str(running.make_url("/api/v1"))
        yield serving


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncClient]:
    monkeypatch.chdir(tmp_path)
    settings = Settings(data_dir=tmp_path / "data", profiles_dir=tmp_path / "profiles")
    async with AsyncClient(settings, interceptors=[]) as opened:
        yield opened


@pytest.fixture
def profile(server: Server) -> Callable[..., ModelProfile]:
    return lambda **values: ModelProfile(
        **{"provider": "openrouter", "model": "vendor/big", "url": server.url, "api_key": "sk-or", **values}
    )


Profile = Callable[..., ModelProfile]


async def described(given: ModelProfile) -> ModelProfile:
    """The profile as the provider completes it."""
    transport = AiohttpTransport()
    try:
        provider = OpenRouterProvider(ProviderContext(transport=lambda: transport, data_dir=Path()))
        return await provider.described(given)
    finally:
        await transport.aclose()


async def test_the_cost_that_openrouter_reports_wins(
    client: AsyncClient, server: Server, profile: Profile
) -> None:
    server.usage = {"cost": 0.0042}
    completion = await client.complete(profile(cost={"input": "9", "output": "9"}), "Hello")
    assert (completion.cost, completion.cost_source) == (Decimal("0.0042"), "provider")


async def test_without_a_reported_cost_the_listed_prices_are_charged(
    client: AsyncClient, profile: Profile
) -> None:
    completion = await client.complete(profile(), "Hello")
    assert completion.cost == Decimal("0.00225")  # 1000 at 1.25 and 100 at 10 per million


async def test_parts_of_the_input_are_charged_at_their_listed_prices(
    client: AsyncClient, server: Server, profile: Profile
) -> None:
    server.usage = {"prompt_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 160}}
    completion = await client.complete(profile(), "Hello")
    assert completion.cost == Decimal("0.00185")  # 440 at 1.25, 400 at 0.125, 160 at 1.5625, 100 at 10


async def test_prices_of_the_profile_come_before_the_listed_ones(
    client: AsyncClient, profile: Profile
) -> None:
    completion = await client.complete(profile(cost={"input": "1", "output": "2"}), "Hello")
    assert completion.cost == Decimal("0.0012")


async def test_the_listed_context_length_fills_a_gap(profile: Profile) -> None:
    assert (await described(profile())).max_context_length == 400000


async def test_the_context_length_of_the_profile_is_kept(profile: Profile) -> None:
    assert (await described(profile(max_context_length=1000))).max_context_length == 1000


@pytest.mark.parametrize("variant", [":nitro", ":floor", ":online"])
async def test_a_routing_variant_has_the_facts_of_its_model(profile: Profile, variant: str) -> None:
    assert (await described(profile(model=f"vendor/big{variant}"))).max_context_length == 400000


async def test_a_free_variant_does_not_get_the_prices_of_the_paid_model(profile: Profile) -> None:
    assert (await described(profile(model="vendor/big:free"))).cost.input is None


async def test_a_router_has_no_price(profile: Profile) -> None:
    assert (await described(profile(model="openrouter/auto"))).cost.input is None


@pytest.mark.parametrize(("model", "expected"), [("vendor/big", True), ("vendor/plain", False)])
async def test_tools_are_supported_where_the_list_says_so(
    client: AsyncClient, profile: Profile, model: str, expected: bool
) -> None:
    assert await client.supports_tools(profile(model=model)) is expected


async def test_tools_are_assumed_where_the_list_says_nothing(client: AsyncClient, profile: Profile) -> None:
    assert await client.supports_tools(profile(model="odd/one")) is True


async def test_the_list_is_fetched_once_for_calls_at_the_same_time(
    client: AsyncClient, server: Server, profile: Profile
) -> None:
    await asyncio.gather(*(client.complete(profile(), "Hello") for _ in range(5)))
    assert server.asked == {"models": 1, "chat/completions": 5}


async def test_the_list_is_fetched_again_when_it_is_old(
    client: AsyncClient, server: Server, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openrouter, "KEPT", -1.0)
    for _ in range(2):
        await client.complete(profile(), "Hello")
    assert server.asked["models"] == 2


async def test_a_profile_that_leaves_nothing_out_needs_no_list(
    client: AsyncClient, server: Server, profile: Profile
) -> None:
    await client.complete(profile(max_context_length=100_000, cost={"input": "1", "output": "1"}), "Hello")
    assert server.asked["models"] == 0


@pytest.mark.parametrize("status", [401, 404, 500, 503])
async def test_a_call_goes_on_without_the_list(
    client: AsyncClient, server: Server, profile: Profile, status: int
) -> None:
    server.models_status = status
    completion = await client.complete(profile(), "Hello")
    assert (completion.text, completion.cost) == ("Paris.", None)


@pytest.mark.parametrize("listed", [None, [], {"data": None}, {"data": [5, {"id": 7}]}, "none"])
async def test_a_call_goes_on_with_a_list_that_makes_no_sense(
    client: AsyncClient, server: Server, profile: Profile, listed: object
) -> None:
    server.models = listed
    assert (await client.complete(profile(), "Hello")).text == "Paris."


async def test_a_list_that_failed_is_not_asked_for_with_every_call(
    client: AsyncClient, server: Server, profile: Profile
) -> None:
    server.models_status = 500
    for _ in range(3):
        await client.complete(profile(), "Hello")
    assert server.asked["models"] == 1


async def test_a_list_that_does_not_come_holds_up_a_call_for_a_moment_only(
    client: AsyncClient, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openrouter, "PATIENCE", 0.0)
    assert (await client.complete(profile(), "Hello")).text == "Paris."


def test_prices_are_exact_per_million() -> None:
    cost = read_models(json.dumps({"data": MODELS}).encode())["vendor/big"].cost
    assert cost is not None
    assert (cost.input, cost.cached_input, cost.cache_write, cost.output, cost.reasoning) == (
        Decimal("1.25"),
        Decimal("0.125"),
        Decimal("1.5625"),
        Decimal("10"),
        None,  # a listed zero: reasoning has no price of its own, and costs as output
    )


def test_a_free_model_costs_nothing() -> None:
    cost = read_models(json.dumps({"data": MODELS}).encode())["vendor/plain"].cost
    assert cost is not None
    assert (cost.input, cost.output) == (Decimal(0), Decimal(0))
