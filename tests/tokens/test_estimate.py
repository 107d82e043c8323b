"""What a request may take before it is sent: the guess, and the number that it does not exceed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmclient.core.conversation import Conversation, FilePart, ImagePart, Part, Role, Turn
from lmclient.core.request import Options
from lmclient.core.tools import Tool, ToolCall
from lmclient.errors import BadRequestError
from lmclient.tokens import get
from lmclient.tokens.estimate import MOST_OF_FILE, MOST_OF_IMAGE, estimate_tokens, most_tokens

EXCHANGES = Path(os.environ.get("LMCLIENT_EXCHANGES", Path(__file__).parents[3] / "shared" / "exchanges"))
TEXTS = {file.stem: file.read_text(encoding="utf-8") for file in (Path(__file__).parent / "texts").iterdir()}
RANDOM = random.Random(1)
ODD = {
    "emoji": "".join(chr(RANDOM.randint(0x1F300, 0x1F6FF)) for _ in range(2000)),
    "base64": base64.b64encode(RANDOM.randbytes(3000)).decode(),
    "letters": "".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=3000)),
    "characters": "".join(chr(RANDOM.randint(0x100, 0xD7FF)) for _ in range(2000)),
    "nothing": "",
}
WEATHER = Tool("weather", "The weather of a place.", {"type": "object", "properties": {"place": {}}})
SCHEMA = {"type": "object", "properties": {"river": {"type": "string", "description": "Its name."}}}
PDF = FilePart(data=b"%PDF" + bytes(50_000))


def most(*parts: Part | str, **options: Any) -> int:
    turns = [Turn(Role.USER, part if isinstance(part, str) else [part]) for part in parts]
    return most_tokens(Conversation(turns), Options(**options))


def guess(*parts: Part | str) -> int:
    return estimate_tokens(
        Conversation([Turn(Role.USER, part if isinstance(part, str) else [part]) for part in parts])
    )


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("name", [*TEXTS, *ODD])
def test_no_text_takes_more_tokens_than_the_most(name: str, encoding: str) -> None:
    text = {**TEXTS, **ODD}[name]
    assert get("tiktoken", encoding).count(text) <= most(text)


def test_the_most_of_a_short_question_is_not_out_of_proportion() -> None:
    assert most("hi") <= 100


def recorded() -> Iterator[Any]:
    """Requests of chat completions that hold what a conversation can.

    Without those whose provider searches, or asks other models, by itself.
    """
    for path in sorted(EXCHANGES.glob("openai-chat.*.json")):
        exchange = json.loads(path.read_text(encoding="utf-8"))
        body, usage = exchange["request"], exchange["expected"]["usage"]
        own = any("function" not in tool for tool in body.get("tools") or ())
        if not usage or own or "models" in body:
            continue
        with contextlib.suppress(BadRequestError):
            conversation = Conversation.from_messages(body["messages"])
            yield pytest.param(conversation, body, usage["input_tokens"], id=exchange["name"])


@pytest.mark.parametrize(("conversation", "body", "reported"), list(recorded()))
def test_no_recorded_request_took_more_than_the_most(
    conversation: Conversation, body: dict[str, Any], reported: int
) -> None:
    functions = [tool["function"] for tool in body.get("tools") or ()]
    tools = [
        Tool(each["name"], each.get("description", ""), each.get("parameters", {})) for each in functions
    ]
    options = Options(tools=tools, response_format=body.get("response_format"))
    assert reported <= most_tokens(conversation, options)


def test_tools_a_schema_images_and_files_count() -> None:
    alone = most("hi")
    assert most("hi", tools=[WEATHER]) > alone + len(json.dumps(WEATHER.parameters))
    assert most("hi", response_format=SCHEMA) > alone + len(json.dumps(SCHEMA))
    assert most("hi", ImagePart(url="https://example.com/a.png")) > alone + MOST_OF_IMAGE
    assert most("hi", PDF) > alone + 50_000
    assert most("hi", FilePart(file_id="f-1")) > alone + MOST_OF_FILE


def test_what_an_assistant_said_counts_with_all_that_is_sent_back() -> None:
    call = ToolCall("1", "weather", {"place": "Zürich"}, '{"place":  "Zürich"}')
    items = ({"type": "thought", "signature": "x" * 500},)
    said = Turn(Role.ASSISTANT, "Wait.", reasoning="r" * 300, tool_calls=(call,), provider_items=items)
    alone = most_tokens(Conversation([Turn(Role.ASSISTANT, "Wait.")]), Options())
    assert most_tokens(Conversation([said]), Options()) > alone + 500 + 300 + len(call.raw_arguments)


def test_the_guess_counts_files_by_their_size() -> None:
    alone = guess("hi")
    assert 1000 < guess("hi", PDF) - alone < 10_000
    assert 1000 < guess("hi", FilePart(url="https://example.com/a.pdf")) - alone < 10_000


@pytest.mark.parametrize("text", ["\ud800", "\0", "a" * 10])
def test_any_str_can_be_counted(text: str) -> None:
    assert most(text, tools=[Tool(text, text, {"odd": {1, 2}})]) > len(text)
