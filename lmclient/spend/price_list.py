"""List prices of genai-prices, where neither the provider nor the profile says what a call costs.

The list is the one inside the installed package (or what the application has had that package load):
nothing is downloaded.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Mapping
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lmclient.core.money import EXACT
from lmclient.core.usage import Usage
from lmclient.spend.prices import Counts, clamped

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

CURRENCY = "USD"
_VENDORS = {
    "openai-chat": "openai",
    "openai-text": "openai",
    "openai-responses": "openai",
    "azure-openai": "azure",
    "azure-ai": "azure",
    "openrouter": "openrouter",
    "anthropic": "anthropic",
    "gemini": "google",
}
"""Whose prices a provider of ours has at its own URL."""
_KINDS = ("audio", "image", "video")
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details", "promptTokensDetails")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details", "candidatesTokensDetails")
# At a URL that the list does not know, models that their vendor alone runs: behind a gateway, they are
# paid for as there. Models with open weights cost what their host takes, which nobody knows.
_VENDORS_OWN = re.compile(r"gpt-\d|o\d|chatgpt-|claude-|gemini-")


def list_price(
    usage: Usage,
    profile: ModelProfile,
    model: str,
    when: datetime.datetime | None = None,
    terms: Mapping[str, str] | None = None,
) -> Decimal | None:
    """What the usage costs in US dollars by the price list, at the time `when` (now if None).

    `model` is what the answer says; if the list does not know it, the profile's model counts. `terms`
    that the list has no other price for, such as the service tier "default", change nothing. None for
    models that the list does not know or names no price for, and for local ones.
    """
    listed = _listed(model, profile.model, profile.provider, profile.url)
    return None if listed is None else _price(usage, *listed, when, terms)


@lru_cache(maxsize=1024)
def _listed(answered: str, asked: str, provider: str, url: str) -> tuple[str, str] | None:
    """The first of the models that the list has, and under which provider of the list."""
    vendor = _VENDORS.get(provider)
    for model in (answered, asked):
        if vendor is not None and model and (owner := _owner(model, vendor, url)) is not None:
            return model, owner
    return None


def _owner(model: str, vendor: str, url: str) -> str | None:
    """The provider of the list under which it has the model, None if it does not have it."""
    host = urlsplit(url).hostname or ""
    own = bool(_VENDORS_OWN.match(model))
    if url and not own and _is_private(host):
        return None
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    try:
        provider = snapshot.find_provider(None, vendor, None)
        if url:
            try:
                provider = snapshot.find_provider(None, None, url)
            except LookupError:
                if not own and vendor != "azure":
                    return None
        snapshot.find_provider_model(model, provider, None, None)
    except LookupError:
        return None
    return provider.id


def _is_private(host: str) -> bool:
    """Whether a host is surely none of a provider on the list, which need not be loaded then."""
    if "." not in host:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _price(
    usage: Usage,
    model: str,
    provider: str,
    when: datetime.datetime | None,
    terms: Mapping[str, str] | None,
) -> Decimal | None:
    import genai_prices

    counts = clamped(usage)
    with localcontext(EXACT):
        priced = genai_prices.calc_price(
            genai_prices.Usage(
                input_tokens=counts.input_tokens,
                cache_read_tokens=counts.cached_input_tokens,
                cache_write_tokens=counts.cache_write_tokens,
                cache_write_1h_tokens=counts.cache_write_1h_tokens,
                output_tokens=counts.output_tokens,
                output_reasoning_tokens=counts.reasoning_tokens,
                **_other_units(usage.details, counts),
            ),
            model,
            provider_id=provider,
            genai_request_timestamp=when,
            price_context=terms,
        )
    prices = priced.model_price
    if (counts.input_tokens and prices.input_mtok is None) or (
        counts.output_tokens and prices.output_mtok is None
    ):
        return None  # the library counts what has no price as free
    return priced.total_price


def _other_units(details: Mapping[str, Any], counts: Counts) -> dict[str, int]:
    """What else the list may have a price for: searches, and tokens that are no text.

    Those of a cached input are left out: which of them were cached is not certain.
    """
    units = {}
    tools = details.get("server_tool_use")
    if isinstance(tools, dict) and (searches := _positive(tools.get("web_search_requests"))):
        units["web_searches"] = searches
    input_kinds, output_kinds = _not_text(details, _INPUT_DETAILS), _not_text(details, _OUTPUT_DETAILS)
    cached = counts.cached_input_tokens + counts.cache_write_tokens
    if not cached and sum(input_kinds.values()) <= counts.input_tokens:
        units |= {f"input_{kind}_tokens": count for kind, count in input_kinds.items()}
    if sum(output_kinds.values()) + counts.reasoning_tokens <= counts.output_tokens:
        units |= {f"output_{kind}_tokens": count for kind, count in output_kinds.items()}
    return units


def _not_text(details: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, int]:
    """The tokens of each other kind, as OpenAI's table or Gemini's list states them."""
    counts: dict[str, int] = {}
    for table in map(details.get, names):
        if isinstance(table, list):
            for entry in table:
                kind = entry.get("modality") if isinstance(entry, dict) else None
                if isinstance(kind, str) and kind.lower() in _KINDS:
                    counts[kind.lower()] = _positive(entry.get("tokenCount"))
        elif isinstance(table, dict):
            counts |= {kind: _positive(table.get(f"{kind}_tokens")) for kind in _KINDS}
    return {kind: count for kind, count in counts.items() if count}


def _positive(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
