"""What a call costs, and who says so: the provider, the profile, or the list of prices."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from lmclient.core.completion import CostSource
from lmclient.core.usage import Usage
from lmclient.spend.price_list import CURRENCY, list_price
from lmclient.spend.prices import price

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile


TERMS = ("service_tier", "speed")
"""What a price may depend on beside the tokens, as it stands in a request and in an answer's metadata."""
_NONE: Mapping[str, str] = {}


def terms_of(said: Mapping[str, object]) -> dict[str, str]:
    """The terms that a request's body or an answer's metadata states."""
    terms = {name: value.lower() for name in TERMS if isinstance(value := said.get(name), str)}
    if terms.get("service_tier") == "batch":  # Anthropic says so; the list's word is another
        terms["processing"] = "batch"
    return terms


class Priced(NamedTuple):
    """What a call costs, None if nobody knows, in which currency, and who says so."""

    cost: Decimal | None
    source: CostSource | None
    currency: str


def cost_of(
    usage: Usage,
    profile: ModelProfile,
    *,
    stated: Decimal | None = None,
    currency: str = CURRENCY,
    model: str = "",
    when: datetime.datetime | None = None,
    terms: Mapping[str, str] = _NONE,
) -> Priced:
    """What the usage costs: as the provider has stated (in `currency`), by the profile, or by the list.

    `model` is the one that answered, `when` the time of the request, `terms` such as its service tier;
    all three matter for the list only.
    """
    if stated is not None:
        return Priced(stated, "provider", currency)
    own = price(usage, profile.cost)
    if own is not None or profile.cost.input is not None or profile.cost.output is not None:
        return Priced(own, None if own is None else "profile", profile.cost.currency)
    listed = list_price(usage, profile, model, when, terms)
    if listed is None:
        return Priced(None, None, profile.cost.currency)
    return Priced(listed, "price-list", CURRENCY)
