"""Counts against the usage that providers reported for recorded requests."""

import json
import os
from pathlib import Path

import pytest

from lmclient.core.conversation import Conversation
from lmclient.core.tools import Tool
from lmclient.tokens import count_messages, get

EXCHANGES = Path(os.environ.get("LMCLIENT_EXCHANGES", Path(__file__).parents[3] / "shared" / "exchanges"))
NOT_TEXT = ('"image_url"', "input_audio", '"file"', '"moderation"', '"response_format"')

pytestmark = pytest.mark.skipif(not EXCHANGES.is_dir(), reason="the recorded exchanges are not here")


def recorded():
    """Model, request and reported input of the requests to OpenAI that hold nothing but text."""
    for path in sorted(EXCHANGES.glob("openai-chat.openai.*.json")):
        exchange = json.loads(path.read_text(encoding="utf-8"))
        usage = exchange["expected"]["usage"]
        if usage and not any(mark in json.dumps(exchange["request"]) for mark in NOT_TEXT):
            yield pytest.param(exchange["request"], usage["input_tokens"], id=exchange["name"])


def counted(request):
    functions = [tool["function"] for tool in request.get("tools", ())]
    tools = [Tool(f["name"], f.get("description", ""), f.get("parameters", {})) for f in functions]
    return count_messages(Conversation.from_messages(request["messages"]), get("tiktoken"), tools)


def uses_tools(request):
    return bool(request.get("tools")) or "tool_calls" in json.dumps(request["messages"])


TEXT = [case for case in recorded() if not uses_tools(case.values[0])]
TOOLS = [case for case in recorded() if uses_tools(case.values[0]) and "gpt-5" not in case.values[0]["model"]]
GPT_5_TOOLS = [
    case for case in recorded() if uses_tools(case.values[0]) and "gpt-5" in case.values[0]["model"]
]


@pytest.mark.parametrize(("request_body", "reported"), TEXT)
def test_text_is_counted_to_the_token_or_one_percent(request_body, reported):
    assert counted(request_body) == pytest.approx(reported, rel=0.01, abs=1)


@pytest.mark.parametrize(("request_body", "reported"), TOOLS)
def test_tools_and_tool_rounds_are_counted_within_eight_percent(request_body, reported):
    assert counted(request_body) == pytest.approx(reported, rel=0.08)


@pytest.mark.parametrize(("request_body", "reported"), GPT_5_TOOLS)
def test_gpt_5_adds_a_constant_to_its_tools(request_body, reported):
    assert counted(request_body) + 83 == pytest.approx(reported, rel=0.05)
