"""The provider `openrouter`: chat completions, with limits and prices from OpenRouter's list of models.

https://openrouter.ai/docs/api/api-reference/models/get-models. The cost of each call comes with its
usage, without being asked for: https://openrouter.ai/docs/use-cases/usage-accounting.
"""

from __future__ import annotations

import asyncio
import builtins
import time
import weakref
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import LMClientError
from lmclient.profiles.model import Cost, ModelProfile
from lmclient.protocols.base import as_dict, as_int, as_str, decode_json
from lmclient.protocols.openai_chat import OpenAIChat
from lmclient.providers.base import ProviderContext
from lmclient.providers.clock import in_time
from lmclient.providers.dialects import dialect_for
from lmclient.providers.http import HttpProvider
from lmclient.spend.prices import MILLION

KEPT = 3600.0
"""Seconds that the list of models is used before it is asked for again."""

KEPT_FAILURE = 60.0
"""Seconds after which a list that could not be had is asked for again."""

PATIENCE = 5.0
"""Seconds that a call waits for the list."""

VARIANTS = (":nitro", ":floor", ":exacto", ":online")
"""Ways to route a model; the list has the model without them."""

PRICES = {
    "input": "prompt",
    "output": "completion",
    "cached_input": "input_cache_read",
    "cache_write": "input_cache_write",
    "reasoning": "internal_reasoning",
}


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What OpenRouter says about a model. `parameters` None: nothing."""

    max_context_length: int | None = None
    cost: Cost | None = None
    parameters: frozenset[str] | None = None


class _Known(msgspec.Struct, frozen=True):
    models: dict[str, ModelFacts]
    until: float


class OpenRouterProvider(HttpProvider):
    """Answers over HTTP; what a profile leaves out comes from OpenRouter's list of models.

    The list is fetched once an hour, by the first call that needs it. A call never fails for its
    lack: it then goes without limits and prices.
    """

    def __init__(self, context: ProviderContext) -> None:
        super().__init__("openrouter", OpenAIChat(), context)
        self._known: dict[str, _Known] = {}
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )

    async def open(self, request: CompletionRequest) -> AsyncCompletionStream:
        profile = await in_time(request, self.described(request.profile))
        return await super().open(msgspec.structs.replace(request, profile=profile))

    async def described(self, profile: ModelProfile) -> ModelProfile:
        """The profile with the limit and the prices of its model, where it says nothing itself."""
        priced = profile.cost.input is not None or profile.cost.output is not None
        if not profile.model or (priced and profile.max_context_length is not None):
            return profile
        facts = await self.facts(profile)
        update: dict[str, object] = {}
        if profile.max_context_length is None and facts.max_context_length is not None:
            update["max_context_length"] = facts.max_context_length
        if not priced and facts.cost is not None:
            update["cost"] = facts.cost
        return profile.model_copy(update=update) if update else profile

    async def supports_tools(self, profile: ModelProfile) -> bool:
        parameters = (await self.facts(profile)).parameters
        if parameters is None:
            return await super().supports_tools(profile)
        return "tools" in parameters

    async def facts(self, profile: ModelProfile) -> ModelFacts:
        """What is known about the profile's model; nothing where the list cannot be had."""
        url = self.located(profile).url
        known = self._known.get(url)
        if known is None or known.until < time.monotonic():
            lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
            async with lock:
                known = self._known.get(url)
                if known is None or known.until < time.monotonic():
                    known = self._known[url] = await self._fetch_models(profile)
        model = profile.model
        for variant in VARIANTS:
            model = model.removesuffix(variant)
        return known.models.get(profile.model) or known.models.get(model) or ModelFacts()

    async def _fetch_models(self, profile: ModelProfile) -> _Known:
        profile = self.located(profile)
        http = self._protocol.encode_models(profile, dialect_for(self._name, profile.url))
        try:
            async with asyncio.timeout(PATIENCE):
                models = read_models(await self.fetch(profile, http))
        except (LMClientError, builtins.TimeoutError):  # the list is a help; calls go on without it
            return _Known({}, time.monotonic() + KEPT_FAILURE)
        return _Known(models, time.monotonic() + KEPT)


def read_models(body: bytes) -> dict[str, ModelFacts]:
    """The models in an answer to `GET /models`, by their id. Raises `ProtocolError`."""
    data = as_dict(decode_json(msgspec.json.Decoder(), body, "a list of models")).get("data")
    models = [as_dict(model) for model in data] if isinstance(data, list) else []
    return {model["id"]: _read_model(model) for model in models if as_str(model.get("id"))}


def _read_model(model: Mapping[str, Any]) -> ModelFacts:
    parameters = model.get("supported_parameters")
    return ModelFacts(
        max_context_length=as_int(model.get("context_length")) or None,
        cost=_read_prices(as_dict(model.get("pricing"))),
        parameters=frozenset(map(str, parameters)) if isinstance(parameters, list) else None,
    )


def _read_prices(pricing: Mapping[str, Any]) -> Cost | None:
    """The prices, which OpenRouter states in US dollars per token.

    None where they vary, which a router such as `openrouter/auto` states as -1. A zero for a part of
    the tokens means that it has no price of its own.
    """
    prices = {kind: _per_million(pricing.get(name)) for kind, name in PRICES.items()}
    if prices["input"] is None or prices["output"] is None:
        return None
    stated = {kind: price for kind, price in prices.items() if price or kind in ("input", "output")}
    return Cost.model_validate(stated)


def _per_million(price: object) -> Decimal | None:
    if isinstance(price, bool) or not isinstance(price, str | int | float):
        return None
    try:
        value = Decimal(str(price))
    except InvalidOperation:
        return None
    return value * MILLION if value.is_finite() and value >= 0 else None
