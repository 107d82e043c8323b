"""The tier that served a call, wherever a vendor says it, and its price of the list."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from lmclient import Completion, Conversation, ModelProfile
from lmclient.core.request import Attempt, CompletionRequest
from lmclient.protocols.anthropic_stream import AnthropicDecoder
from lmclient.protocols.base import Decoder
from lmclient.protocols.gemini_decoder import GeminiDecoder
from lmclient.protocols.openai_chat import OpenAIChatDecoder
from lmclient.protocols.openai_responses_decoder import OpenAIResponsesDecoder
from lmclient.providers.finishing import completion_of

WHEN = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
MILLION = 1_000_000


def finished(decoder: Decoder, provider: str, model: str, *events: dict[str, Any]) -> Completion:
    """The completion of the events of a stream, or of a whole answer if there is only one."""
    if len(events) == 1:
        decoder.feed(json.dumps(events[0]).encode())
    else:
        for event in events:
            decoder.feed(f"data: {json.dumps(event)}\n\n".encode())
    decoder.finish()
    profile = ModelProfile(provider=provider, model=model)
    request = CompletionRequest(profile=profile, conversation=Conversation.create("Hello"))
    request.attempts.append(Attempt(profile=profile, started=WHEN))
    return completion_of(decoder.answer, request)


def chat(tier: str | None) -> Completion:
    usage = {"prompt_tokens": MILLION, "completion_tokens": 0}
    body = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage}
    return finished(OpenAIChatDecoder(), "openai-chat", "gpt-5", body | {"service_tier": tier})


def chat_stream(tier: str | None) -> Completion:
    usage = {"prompt_tokens": MILLION, "completion_tokens": 0}
    choice = {"delta": {"content": "hi"}, "finish_reason": "stop"}
    events = [{"choices": [choice], "service_tier": tier}, {"choices": [], "usage": usage}]
    return finished(OpenAIChatDecoder(), "openai-chat", "gpt-5", *events)


def responses(tier: str | None) -> Completion:
    usage = {"input_tokens": MILLION, "output_tokens": 0}
    body = {"object": "response", "status": "completed", "output": [], "usage": usage}
    return finished(OpenAIResponsesDecoder(), "openai-responses", "gpt-5", body | {"service_tier": tier})


@pytest.mark.parametrize("answer", [chat, chat_stream, responses])
def test_openai_is_paid_by_the_tier_that_served_the_call(answer: Any) -> None:
    costs = {tier: answer(tier).cost for tier in (None, "default", "flex", "priority")}
    assert costs == {
        None: Decimal("1.25"),
        "default": Decimal("1.25"),
        "flex": Decimal("0.625"),
        "priority": Decimal("2.5"),
    }
    assert answer("flex").metadata["service_tier"] == "flex"
    assert "service_tier" not in answer(None).metadata


@pytest.mark.parametrize("tier", [1, ["flex"], {}, ""])
def test_a_tier_that_is_no_word_is_none(tier: Any) -> None:
    completion = chat(tier)
    assert completion.cost == Decimal("1.25")
    assert "service_tier" not in completion.metadata


def test_gemini_is_paid_by_the_tier_in_its_usage() -> None:
    def cost(tier: str) -> Decimal | None:
        body = {
            "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1000, "serviceTier": tier},
        }
        completion = finished(GeminiDecoder(), "gemini", "gemini-3.8-flash-tts", body)
        assert completion.metadata["service_tier"] == tier
        return completion.cost

    usual, priority = cost("standard"), cost("priority")
    assert usual is not None
    assert priority is not None
    assert usual < priority


def test_claude_is_paid_by_the_speed_in_its_usage() -> None:
    def cost(**terms: str) -> Decimal | None:
        body = {
            "content": [{"type": "text", "text": "hi"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": MILLION, "output_tokens": 0, **terms},
        }
        return finished(AnthropicDecoder(), "anthropic", "claude-opus-4-8", body).cost

    usual, fast = cost(service_tier="standard"), cost(service_tier="standard", speed="fast")
    assert usual is not None
    assert fast is not None
    assert usual < fast


def test_claude_in_a_batch_has_the_price_of_a_batch() -> None:
    def cost(tier: str) -> Decimal | None:
        body = {
            "content": [{"type": "text", "text": "hi"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1000, "output_tokens": 10, "service_tier": tier},
        }
        return finished(AnthropicDecoder(), "anthropic", "claude-opus-5", body).cost

    assert (cost("standard"), cost("batch")) == (Decimal("0.00525"), Decimal("0.002625"))


def test_an_answer_that_breaks_off_is_paid_by_the_tier_of_its_beginning() -> None:
    def cost(tier: str) -> Decimal | None:
        created = {"type": "response.created", "response": {"id": "r", "service_tier": tier}}
        piece = {"type": "response.output_text.delta", "output_index": 0, "delta": "Many words"}
        return finished(OpenAIResponsesDecoder(), "openai-responses", "gpt-5", created, piece).cost

    standard, priority = cost("auto"), cost("priority")
    assert standard is not None
    assert priority == standard * 2
