"""What OpenRouter said a recorded call had cost, against our own sum at the prices of the list."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lmclient import Client, Completion, ModelProfile, Settings
from lmclient.spend.price_list import list_price

from .exchange import MISSING, RECORDED, exchanges, play

BEYOND_THE_TOKENS = {
    "openrouter_advisor_tool": "another model that gave advice is paid, too",
    "openrouter_cache_instructions_gemini_real_api": "all cached tokens count as written as well",
    "openrouter_file_annotation": "reading the file is paid, too",
    "openrouter_web_search_tool_full_params": "twice the list's price of this model",
}
"""Recordings whose cost is more than that of the model's tokens, and why."""


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Completion]:
    """The recorded answers that state a cost."""
    directory = tmp_path_factory.mktemp("client")
    found = {}
    with Client(Settings(data_dir=directory, profiles_dir=directory), interceptors=[]) as client:
        for exchange in exchanges(RECORDED, "openai-chat.openrouter.*.json"):
            answer = play(client, exchange, "/chat/completions", provider="openai-chat").completion
            if answer.cost_source == "provider":
                found[exchange.name] = answer
    return found


def test_our_sum_is_the_cost_that_the_provider_states(priced: dict[str, Completion]) -> None:
    if not RECORDED.is_dir():
        pytest.skip(MISSING)
    compared = 0
    for name, answer in priced.items():
        profile = ModelProfile(provider="openrouter", model=answer.model)
        ours = list_price(answer.usage, profile, answer.model)
        if ours is None or any(known in name for known in BEYOND_THE_TOKENS):
            continue
        assert answer.cost is not None
        exponent = answer.cost.as_tuple().exponent
        assert isinstance(exponent, int)
        rounding = Decimal(5).scaleb(exponent - 1)
        assert abs(ours - answer.cost) <= rounding, name
        compared += 1
    assert compared >= 12
