"""What a conversation costs as chat messages."""

import pytest

from lmclient.core.conversation import Conversation, ImagePart, Role, TextPart, Turn
from lmclient.core.tools import Tool, ToolCall
from lmclient.tokens import count_messages, count_messages_on_server, get
from lmclient.tokens.declarations import declarations
from lmclient.tokens.messages import texts

WEATHER = Tool(
    "get_weather",
    "The weather of a place.",
    {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "Town and country."},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "array", "items": {"type": "integer"}},
            "at": {
                "type": "object",
                "properties": {"hour": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            },
            "station": {"$ref": "#/$defs/Station"},
            "other": True,
        },
        "required": ["place"],
    },
)


def cost(*turns, tools=()):
    return count_messages(Conversation(list(turns)), get("tiktoken"), tools)


def test_one_message_costs_its_text_and_seven_tokens():
    assert cost(Turn(Role.USER, "What is the capital of France?")) == 7 + 7


def test_each_further_message_costs_four_tokens_more():
    assert cost(Turn(Role.SYSTEM, "Hello"), Turn(Role.USER, "Hello")) == 3 + 2 * (4 + 1)


def test_a_name_costs_itself_and_one_token():
    assert cost(Turn(Role.USER, "Hello", name="Anna")) - cost(Turn(Role.USER, "Hello")) == 2


def test_text_parts_cost_what_their_text_costs():
    assert cost(Turn(Role.USER, [TextPart("Hello")])) == cost(Turn(Role.USER, "Hello"))


@pytest.mark.parametrize(("detail", "tokens"), [("low", 85), (None, 765)])
def test_an_image_costs_what_its_detail_costs(detail, tokens):
    image = ImagePart(url="https://example.com/a.png", detail=detail)

    assert cost(Turn(Role.USER, [image])) == 7 + tokens


def test_reasoning_counts_only_while_its_tools_run():
    call = Turn(Role.ASSISTANT, "", reasoning="I should look it up.", tool_calls=(ToolCall("1", "look", {}),))
    result = Turn(Role.TOOL, "Rain", tool_call_id="1")
    question = Turn(Role.USER, "And?")

    assert "I should look it up." in list(texts(Conversation([question, call, result])))
    assert "I should look it up." not in list(texts(Conversation([question, call, result, question])))


def test_arguments_are_counted_as_they_are_sent():
    call = Turn(Role.ASSISTANT, "", tool_calls=(ToolCall("1", "look", {"at": "Zürich", "n": 1}),))

    assert list(texts(Conversation([call])))[1:] == ["look", '{"at":"Zürich","n":1}']


def test_tools_are_declared_as_openai_models_see_them():
    assert (
        declarations([WEATHER, Tool("stop", "", {})])
        == """# Tools

## functions

namespace functions {

// The weather of a place.
type get_weather = (_: {
// Town and country.
place: string,
unit?: "C" | "F",
days?: number[],
at?: {
hour?: number | null,
},
station?: Station,
other?: any,
}) => any;

type stop = () => any;

} // namespace functions"""
    )


async def test_a_server_is_asked_once_for_the_whole_conversation():
    asked = []

    class Characters:
        async def tokenize(self, text, *, parse_special=False):
            return list(map(ord, text))

        async def detokenize(self, tokens):
            return "".join(map(chr, tokens))

        async def count(self, text, *, parse_special=False):
            asked.append(text)
            return len(text)

    conversation = Conversation([Turn(Role.SYSTEM, "ab"), Turn(Role.USER, "c")])

    assert await count_messages_on_server(conversation, Characters()) == 3 + 2 * 4 + 4
    assert asked == ["ab\nc"]
