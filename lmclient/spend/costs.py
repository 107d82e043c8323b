"""What a call costs, and who says so: the provider, the profile, or the list of prices."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from lmclient.core.completion import CostSource
from lmclient.core.usage import Usage
from lmclient.spend.price_list import CURRENCY, list_price
from lmclient.spend.prices import price

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile


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
    model: str = "",
    when: datetime.datetime | None = None,
) -> Priced:
    """What the usage costs: as the provider has stated (in US dollars), by the profile, or by the list.

    `model` is the one that answered, `when` the time of the request; both matter for the list only.
    """
    if stated is not None:
        return Priced(stated, "provider", "USD")
    own = price(usage, profile.cost)
    if own is not None or profile.cost.input is not None or profile.cost.output is not None:
        return Priced(own, None if own is None else "profile", profile.cost.currency)
    listed = list_price(usage, profile, model, when)
    if listed is None:
        return Priced(None, None, profile.cost.currency)
    return Priced(listed, "price-list", CURRENCY)
