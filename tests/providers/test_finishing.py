"""From what a decoder has read to a completion."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from lmclient import Completion, Conversation, ModelProfile, Tool
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


def completion(*events: dict[str, Any], ended: bool = True) -> Completion:
    """The completion of a stream of these events."""
    decoder = OpenAIChatDecoder()
    for event in events:
        decoder.feed(f"data: {json.dumps(event)}\n\n".encode())
    if ended:
        decoder.feed(b"data: [DONE]\n\n")
    decoder.finish()
    return completion_of(
        decoder.answer, CompletionRequest(profile=PROFILE, conversation=Conversation.create("Hello"))
    )


def text_event(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}], **more}


EARLY = text_event("", usage={"prompt_tokens": 1000, "completion_tokens": 0})
WORDS = [text_event("a few words and ")] * 20


@pytest.mark.parametrize("last", [[], [text_event("", "stop")]])
def test_a_usage_from_before_the_text_does_not_make_the_text_free(last: list[dict[str, Any]]) -> None:
    """A12: the stream breaks off, or the usage of its end is missing."""
    usage = completion(EARLY, *WORDS, *last, ended=False).usage
    assert (usage.input_tokens, usage.estimated) == (1000, True)
    assert usage.output_tokens >= 60


def test_more_output_than_can_be_estimated_stays_counted_where_a_stream_breaks_off() -> None:
    counted = text_event("", usage={"prompt_tokens": 1000, "completion_tokens": 700})
    usage = completion(EARLY, *WORDS, counted, ended=False).usage
    assert (usage.output_tokens, usage.estimated) == (700, False)


def test_a_stated_zero_is_zero_at_the_end() -> None:
    zero = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    usage = completion(*WORDS, text_event("", "stop", usage=zero)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (0, 0, False)


@pytest.mark.parametrize("count", [None, -1, True, "x"])
def test_the_half_that_is_not_counted_is_estimated(count: Any) -> None:
    end = text_event("", "stop", usage={"prompt_tokens": count, "completion_tokens": 500})
    usage = completion(*WORDS, end).usage
    assert (usage.input_tokens > 0, usage.output_tokens, usage.estimated) == (True, 500, True)
    end = text_event("", "stop", usage={"prompt_tokens": 1000, "completion_tokens": count})
    usage = completion(*WORDS, end).usage
    assert (usage.input_tokens, usage.output_tokens >= 60, usage.estimated) == (1000, True, True)


def test_a_stated_cost_may_be_in_another_currency() -> None:
    counts = {"prompt_tokens": 1000, "completion_tokens": 500}
    end = text_event("", "stop", usage={**counts, "cost": 0.5, "cost_currency": "EUR"})
    answered = completion(end)
    assert (answered.cost, answered.currency, answered.cost_source) == (Decimal("0.5"), "EUR", "provider")


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
    whole = completion_of(decoder.answer, request)
    assert (whole.usage.input_tokens, whole.usage.cached_input_tokens) == (17_000, 16_000)
    assert whole.usage.details["video_tokens"] == 7
    assert whole.usage.details["market_cost"] == 0.5
    assert (whole.cost, whole.cost_source) == (Decimal("0.00125"), "provider")
    assert Decimal(whole.metadata["computed_cost"]) == Decimal("0.00268")
    assert json.loads(json.dumps(whole.metadata)) == whole.metadata
