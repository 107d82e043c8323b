"""From what a decoder has read to a completion."""

from __future__ import annotations

import json
from decimal import Decimal

from lmclient import Conversation, ModelProfile, Tool
from lmclient.core.conversation import ImagePart, TextPart
from lmclient.core.request import CompletionRequest, Options
from lmclient.profiles.model import Cost
from lmclient.protocols.answer import Answer
from lmclient.protocols.openai_chat import OpenAIChatDecoder
from lmclient.providers.finishing import completion_of

PROFILE = ModelProfile(provider="openai-chat", model="m", url="http://localhost:1/v1")


def weather(city: str, days: int = 1) -> str:
    """The weather of the next days in a city."""
    return f"{city}: {days}"


def estimated_input(conversation: Conversation, options: Options | None = None) -> int:
    request = CompletionRequest(
        profile=PROFILE, conversation=conversation, options=Options() if options is None else options
    )
    usage = completion_of(Answer(), request).usage
    assert usage.estimated
    return usage.input_tokens


def test_an_estimated_prompt_includes_what_is_no_text() -> None:
    text = Conversation.create("What is this?")
    image = Conversation.create([TextPart("What is this?"), ImagePart(url="https://example.com/a.png")])
    tools = Options(tools=[Tool.from_function(weather)])
    assert 4 < estimated_input(text) < 20
    assert estimated_input(text, tools) > estimated_input(text) + 20
    assert estimated_input(image) > estimated_input(text) + 500


def test_counts_beside_the_usual_ones_and_both_costs_are_kept() -> None:
    """A06: what a gateway adds to the usage, and what it states as its cost, beside our own figures."""
    usage = {
        "prompt_tokens": 17_000,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 16_000},
        "video_tokens": 7,
        "market_cost": 0.5,
        "cost": 0.00125,
    }
    decoder = OpenAIChatDecoder()
    decoder.feed(json.dumps({"choices": [{"message": {"content": "hi"}}], "usage": usage}).encode())
    decoder.finish()
    profile = PROFILE.model_copy(update={"cost": Cost(input="1", cached_input="0.1", output="8")})
    request = CompletionRequest(profile=profile, conversation=Conversation.create("Hello"))
    completion = completion_of(decoder.answer, request)
    assert (completion.usage.input_tokens, completion.usage.cached_input_tokens) == (17_000, 16_000)
    assert completion.usage.details["video_tokens"] == 7
    assert completion.usage.details["market_cost"] == 0.5
    assert (completion.cost, completion.cost_source) == (Decimal("0.00125"), "provider")
    assert Decimal(completion.metadata["computed_cost"]) == Decimal("0.00268")
    assert json.loads(json.dumps(completion.metadata)) == completion.metadata
