"""From what a decoder has read to a completion."""

from __future__ import annotations

from lmclient import Conversation, ModelProfile, Tool
from lmclient.core.conversation import ImagePart, TextPart
from lmclient.core.request import CompletionRequest, Options
from lmclient.protocols.answer import Answer
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
