"""GET /v1/models."""

from __future__ import annotations

import openai
import pytest


def test_categories_come_first_then_profiles(client: openai.OpenAI) -> None:
    models = list(client.models.list())
    assert [model.id for model in models[:6]] == ["s", "m", "l", "xl", "hot", "cold"]
    assert "scripted" in [model.id for model in models]


def test_a_model_says_what_stands_behind_it(client: openai.OpenAI) -> None:
    assert client.models.retrieve("m").lmclient == {"kind": "category", "profiles": ["scripted"]}


def test_a_model_that_does_not_exist(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nope"):
        client.models.retrieve("nope")
