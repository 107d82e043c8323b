"""What is sent to Anthropic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmclient.core.conversation import Conversation, FilePart, ImagePart, Role, TextPart, Turn
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.tools import Tool, ToolCall
from lmclient.errors import BadRequestError, UnsupportedOptionError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.anthropic import DEFAULT_MAX_TOKENS, Anthropic
from lmclient.protocols.anthropic_messages import WHOLE_CONTENT
from lmclient.protocols.anthropic_thinking import BUDGETS
from lmclient.providers.dialects import dialect_for

WEATHER = Tool(
    "weather", "Tells the weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)
CLOCK = Tool("clock", "Tells the time.", {})
SONNET_45, OPUS_48 = "claude-sonnet-4-5", "claude-opus-4-8"
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CALL = ToolCall("t1", "weather", {"city": "Rome"}, '{"city":"Rome"}')


def encoded(
    conversation: Any = "Hi.", *, profile: dict[str, Any] | None = None, stream: bool = False, **options: Any
) -> dict[str, Any]:
    """The body of a call, decoded again."""
    values: dict[str, Any] = {"model": SONNET_45, "max_tokens": 4000, **(profile or {})}
    request = CompletionRequest(
        profile=ModelProfile(provider="anthropic", **values),
        conversation=Conversation.of(conversation),
        options=Options(**options),
        stream=stream,
    )
    http = Anthropic().encode(request, dialect_for("anthropic", ""))
    body: dict[str, Any] = json.loads(http.body)
    return body


def round_of(*items: dict[str, Any], text: str = "", call: ToolCall = CALL) -> list[Turn]:
    """A conversation that ends in the result of a tool."""
    return [
        Turn(Role.USER, "Weather?"),
        Turn(Role.ASSISTANT, text, tool_calls=[call], provider_items=items),
        Turn(Role.TOOL, "Sunny.", tool_call_id=call.id),
    ]


def test_a_plain_call() -> None:
    assert encoded() == {
        "model": SONNET_45,
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": "Hi."}],
    }


def test_url_and_headers() -> None:
    profile = ModelProfile(provider="anthropic", model="m", api_key="k")
    request = CompletionRequest(profile=profile, conversation=Conversation.of("Hi."), stream=True)
    http = Anthropic().encode(request, dialect_for("anthropic", ""))
    assert http.url == "https://api.anthropic.com/v1/messages"
    assert http.headers["x-api-key"] == "k"
    assert http.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in http.headers


@pytest.mark.parametrize(
    "url",
    ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/messages"],
)
def test_every_spelling_of_a_url_leads_to_the_endpoint(url: str) -> None:
    profile = ModelProfile(provider="anthropic", model="m", url=url)
    request = CompletionRequest(profile=profile, conversation=Conversation.of("Hi."))
    assert Anthropic().encode(request, dialect_for("anthropic", url)).url == "http://h:1/v1/messages"


def test_another_version_of_the_api_can_be_asked_for_in_the_profile() -> None:
    profile = ModelProfile(provider="anthropic", model="m", headers={"Anthropic-Version": "2030-01-01"})
    http = Anthropic().encode_models(profile, dialect_for("anthropic", ""))
    assert http.headers["anthropic-version"] == "2030-01-01"
    assert http.url == "https://api.anthropic.com/v1/models?limit=1000"


def test_the_limit_is_always_sent() -> None:
    assert encoded(profile={"max_tokens": None})["max_tokens"] == DEFAULT_MAX_TOKENS
    assert encoded(profile={"max_tokens": 0})["max_tokens"] == DEFAULT_MAX_TOKENS
    assert encoded(max_tokens=7)["max_tokens"] == 7


def test_system_turns_are_joined_wherever_they_stand() -> None:
    body = encoded([Turn("system", "A."), Turn("user", "Hi."), Turn("system", "B."), Turn("user", "Well?")])
    assert body["system"] == "A.\n\nB."
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "text", "text": "Well?"}]}
    ]


def test_an_image_in_a_system_turn_is_refused() -> None:
    with pytest.raises(UnsupportedOptionError, match="system"):
        encoded([Turn("system", [ImagePart(data=b"x")]), Turn("user", "Hi.")])


def test_turns_that_say_nothing_are_left_out() -> None:
    body = encoded(
        [Turn("user", "Hi."), Turn("assistant", ""), Turn("user", [TextPart(""), TextPart("Well?")])]
    )
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "text", "text": "Well?"}]}
    ]


def test_parallel_results_share_a_turn_with_what_the_user_adds() -> None:
    calls = [CALL, ToolCall("t2", "clock", None, "{")]
    body = encoded(
        [
            Turn("user", "Weather and time?"),
            Turn("assistant", "Let me see.", tool_calls=calls),
            Turn("tool", "Sunny.", tool_call_id="t1"),
            Turn("tool", "It stands still.", tool_call_id="t2", is_error=True),
            Turn("user", "Quick!"),
        ]
    )
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "t2", "name": "clock", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "Sunny."},
                {"type": "tool_result", "tool_use_id": "t2", "content": "It stands still.", "is_error": True},
                {"type": "text", "text": "Quick!"},
            ],
        },
    ]


def test_ids_of_other_providers_are_made_acceptable() -> None:
    messages = encoded(round_of(call=ToolCall("functions.get:0", "get", {})))["messages"]
    assert messages[1]["content"][0]["id"] == messages[2]["content"][0]["tool_use_id"] == "functions_get_0"


def test_a_result_without_the_id_of_its_call_is_refused() -> None:
    with pytest.raises(BadRequestError, match="tool_call_id"):
        encoded([Turn("user", "Hi."), Turn("tool", "Sunny.")])


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            ImagePart(data=b"abc", media_type="image/gif"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "YWJj"}},
        ),
        (
            ImagePart(url="https://h/cat.png"),
            {"type": "image", "source": {"type": "url", "url": "https://h/cat.png"}},
        ),
        (
            ImagePart(url="data:image/webp;base64,YWJj"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "YWJj"}},
        ),
        (
            FilePart(data=b"abc", filename="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "YWJj"},
                "title": "a.pdf",
            },
        ),
        (
            FilePart(data="ä".encode(), media_type="text/markdown"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ä"}},
        ),
        (
            FilePart(url="https://h/a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://h/a.pdf"}},
        ),
        (FilePart(file_id="file_1"), {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
        (
            FilePart(file_id="file_1", media_type="image/png", filename="a.png"),
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        ),
    ],
)
def test_a_part_becomes_a_block(part: Any, block: dict[str, Any]) -> None:
    assert encoded([Turn("user", [part])])["messages"][0]["content"] == [block]


def test_sound_is_refused() -> None:
    with pytest.raises(UnsupportedOptionError, match="audio/wav"):
        encoded([Turn("user", [FilePart(data=b"x", media_type="audio/wav")])])


def test_tools() -> None:
    strict = Tool("s", "Strict.", {"type": "object", "additionalProperties": False}, strict=True)
    body = encoded(tools=[WEATHER, CLOCK, strict])
    assert body["tools"] == [
        {"name": "weather", "description": "Tells the weather.", "input_schema": WEATHER.parameters},
        {"name": "clock", "description": "Tells the time.", "input_schema": {"type": "object"}},
        {"name": "s", "description": "Strict.", "input_schema": strict.parameters, "strict": True},
    ]
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        ("required", None, {"type": "any"}),
        ("none", None, {"type": "none"}),
        ("none", False, {"type": "none"}),
        ("weather", None, {"type": "tool", "name": "weather"}),
        ("weather", False, {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("auto", True, None),
    ],
)
def test_the_choice_of_tools(choice: str, parallel: bool | None, sent: Any) -> None:
    body = encoded(tools=[WEATHER], tool_choice=choice, parallel_tool_calls=parallel)
    assert body.get("tool_choice") == sent


def test_a_tool_that_is_not_offered_cannot_be_chosen() -> None:
    with pytest.raises(BadRequestError, match="wether"):
        encoded(tools=[WEATHER], tool_choice="wether")


def test_a_seed_is_refused() -> None:
    with pytest.raises(UnsupportedOptionError, match="seed"):
        encoded(seed=1)


def test_sampling() -> None:
    body = encoded(temperature=0.0, top_p=0.9, stop=["END"], profile={"temperature": 1.0})
    assert (body["temperature"], body["top_p"], body["stop_sequences"]) == (0.0, 0.9, ["END"])


def test_a_top_p_of_one_is_left_out_beside_a_temperature() -> None:
    body = encoded(profile={"temperature": 0.2, "top_p": 1.0})
    assert body["temperature"] == 0.2
    assert "top_p" not in body


@pytest.mark.parametrize("model", [OPUS_48, "claude-opus-4-7", "claude-sonnet-5", "claude-fable-5-1"])
def test_models_that_sample_in_one_way_only_get_no_temperature(model: str) -> None:
    body = encoded(profile={"model": model}, temperature=0.2, top_p=0.5)
    assert not {"temperature", "top_p"} & body.keys()


@pytest.mark.parametrize(
    "model",
    [SONNET_45, "claude-sonnet-4-20250514", "claude-opus-4-1-20250805", "claude-3-7-sonnet-latest"],
)
def test_older_models_think_within_a_budget(model: str) -> None:
    body = encoded(
        profile={"model": model, "temperature": 0.2, "max_tokens": 40000}, reasoning_effort="medium"
    )
    assert body["thinking"] == {"type": "enabled", "budget_tokens": BUDGETS["medium"]}
    assert not {"temperature", "output_config"} & body.keys()


@pytest.mark.parametrize(("limit", "budget"), [(4000, 2000), (1500, 1024), (30000, 8192)])
def test_the_budget_leaves_room_for_the_answer(limit: int, budget: int) -> None:
    body = encoded(max_tokens=limit, reasoning_effort="medium")
    assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (limit, budget)


def test_without_a_limit_thinking_comes_on_top_of_the_default() -> None:
    body = encoded(profile={"max_tokens": None}, reasoning_effort="high")
    assert body["max_tokens"] == DEFAULT_MAX_TOKENS + BUDGETS["high"]


def test_a_limit_too_small_for_thinking_is_refused() -> None:
    with pytest.raises(UnsupportedOptionError, match="1024"):
        encoded(max_tokens=100, reasoning_effort="low")


def test_an_unknown_effort_is_refused_where_it_needs_a_budget() -> None:
    with pytest.raises(UnsupportedOptionError, match="much"):
        encoded(reasoning_effort="much")


@pytest.mark.parametrize(("effort", "sent"), [("minimal", "low"), ("high", "high"), ("xhigh", "xhigh")])
def test_newer_models_decide_themselves_guided_by_the_effort(effort: str, sent: str) -> None:
    body = encoded(profile={"model": OPUS_48, "temperature": 0.2}, reasoning_effort=effort)
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": sent}
    assert "temperature" not in body


@pytest.mark.parametrize(("summary", "display"), [("auto", "summarized"), ("none", "omitted")])
def test_the_summary_setting_says_whether_thinking_is_shown(summary: str, display: str) -> None:
    body = encoded(profile={"model": OPUS_48, "reasoning_summary": summary}, reasoning_effort="low")
    assert body["thinking"] == {"type": "adaptive", "display": display}


def test_an_effort_of_none_turns_thinking_off() -> None:
    body = encoded(profile={"reasoning_effort": "high", "temperature": 0.2}, reasoning_effort="none")
    assert body["thinking"] == {"type": "disabled"}
    assert body["temperature"] == 0.2


@pytest.mark.parametrize("model", [SONNET_45, "claude-opus-4-6"])
def test_a_forced_tool_and_thinking_exclude_each_other(model: str) -> None:
    body = encoded(profile={"model": model}, reasoning_effort="low", tools=[WEATHER], tool_choice="required")
    assert body["tool_choice"] == {"type": "any"}
    assert "thinking" not in body


def test_thinking_in_the_extra_body_wins() -> None:
    thinking = {"type": "enabled", "budget_tokens": 3000}
    body = encoded(extra_body={"thinking": thinking}, reasoning_effort="low", temperature=0.2)
    assert body["thinking"] == thinking
    assert "temperature" not in body


def test_caching_is_asked_for_with_the_extra_body() -> None:
    cache = {"type": "ephemeral", "ttl": "1h"}
    assert encoded(profile={"extra_body": {"cache_control": cache}})["cache_control"] == cache


def test_structured_output() -> None:
    structured = pytest.importorskip("lmclient.core.structured")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    body = encoded(profile={"model": OPUS_48}, response_format=schema, reasoning_effort="low")
    assert body["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": structured.strict_schema(schema)},
    }


@pytest.mark.parametrize(
    "model",
    [
        "claude-3-5-haiku-latest",
        "claude-2.1",
        "claude-sonnet-4-20250514",
        "claude-opus-4-1",
        "claude-opus-4-0",
    ],
)
def test_a_model_without_structured_output_is_asked_in_words(model: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    body = encoded(Conversation.create("Hi.", "Be brief."), profile={"model": model}, response_format=schema)
    assert "output_config" not in body
    assert body["system"].startswith("Be brief.\n\n")
    assert json.dumps(schema) in body["system"]


@pytest.mark.parametrize(
    "model", [SONNET_45, "claude-opus-4-5-20251101", "claude-haiku-4-5", "claude-opus-5-5"]
)
def test_a_model_with_structured_output_gets_the_schema_alone(model: str) -> None:
    body = encoded(profile={"model": model}, response_format={"type": "object", "properties": {}})
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert "system" not in body


@pytest.mark.parametrize("model", [SONNET_45, OPUS_48])
def test_a_stream_is_asked_for_in_the_same_words(model: str) -> None:
    options: dict[str, Any] = {
        "tools": [WEATHER, CLOCK],
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "stop": ["END"],
        "profile": {"model": model, "temperature": 0.3, "extra_body": {"metadata": {"user_id": "7"}}},
    }
    plain = encoded(round_of(THINKING), **options)
    assert encoded(round_of(THINKING), stream=True, **options) == {**plain, "stream": True}


def test_thinking_goes_back_unchanged_before_what_was_said() -> None:
    redacted = {"type": "redacted_thinking", "data": "eA=="}
    body = encoded(round_of(THINKING, redacted, text="I look."), reasoning_effort="low")
    assert body["messages"][1]["content"] == [
        THINKING,
        redacted,
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}},
    ]
    assert body["thinking"]["type"] == "enabled"


def test_thinking_without_a_signature_stays_out_and_so_does_the_budget() -> None:
    unsigned = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    body = encoded(round_of(unsigned, {"type": "thinking", "thinking": "Hm."}), reasoning_effort="low")
    assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]
    assert "thinking" not in body


def test_a_round_that_began_with_thinking_goes_on_with_it() -> None:
    later = [
        Turn(Role.ASSISTANT, "", tool_calls=[ToolCall("t2", "clock", {})]),
        Turn(Role.TOOL, "Noon.", tool_call_id="t2"),
    ]
    body = encoded([*round_of(THINKING), *later], reasoning_effort="low")
    assert body["thinking"]["type"] == "enabled"


def test_reasoning_of_other_providers_stays_out() -> None:
    turns = [
        Turn("user", "Hi."),
        Turn(
            "assistant",
            "Hello.",
            reasoning="Greet.",
            provider_items=[{"type": "reasoning", "encrypted_content": "x"}],
        ),
        Turn("user", "Well?"),
    ]
    assert encoded(turns)["messages"][1]["content"] == [{"type": "text", "text": "Hello."}]


def whole(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": WHOLE_CONTENT, "content": list(blocks)}


SEARCH: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Rome"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
]
FOUND: dict[str, Any] = {
    "type": "text",
    "text": "Found.",
    "citations": [{"type": "web_search_result_location"}],
}


def test_an_answer_with_tools_of_the_server_goes_back_as_it_was() -> None:
    turns = [Turn("assistant", "Found.", provider_items=[whole(*SEARCH, FOUND)]), Turn("user", "Thanks.")]
    assert encoded(turns)["messages"][0]["content"] == [*SEARCH, FOUND]


def test_an_edited_answer_goes_back_as_edited() -> None:
    turns = [
        Turn("assistant", "Nothing.", provider_items=[whole(THINKING, *SEARCH, FOUND)]),
        Turn("user", "Why?"),
    ]
    assert encoded(turns)["messages"][0]["content"] == [THINKING, {"type": "text", "text": "Nothing."}]


def test_a_system_turn_alone_is_refused() -> None:
    with pytest.raises(BadRequestError, match="beside the system turn"):
        encoded([Turn("system", "Be brief.")])
