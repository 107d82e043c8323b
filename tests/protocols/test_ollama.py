"""Ollama's own protocol: what is sent, and how answers are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.conversation import Conversation, FilePart, ImagePart, TextPart, Turn
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.tools import Tool, ToolCall
from lmclient.errors import (
    LMClientError,
    NotFoundError,
    ProtocolError,
    ServerError,
    StreamInterruptedError,
    UnsupportedOptionError,
)
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.ollama import Ollama
from lmclient.protocols.ollama_stream import OllamaDecoder
from lmclient.providers.dialects import dialect_for
from lmclient.providers.finishing import completion_of

Json = dict[str, Any]
SPLITS = pytest.mark.parametrize("split", [0, 1, 7])
WEATHER = Tool("weather", "Tells the weather.", {"type": "object"})
CALL = {"function": {"name": "weather", "arguments": {"city": "Rom"}}}
END: Json = {
    "model": "qwen3",
    "created_at": "2026-01-02T03:04:06Z",
    "message": {"role": "assistant", "content": ""},
    "done": True,
    "done_reason": "stop",
    "total_duration": 300,
    "prompt_eval_count": 11,
    "eval_count": 5,
}


def http_of(
    conversation: Any = "Hi.", *, stream: bool = False, profile: Json | None = None, **options: Any
) -> Any:
    """The HTTP request of a call."""
    request = CompletionRequest(
        profile=ModelProfile(provider="ollama", model="qwen3", **(profile or {})),
        conversation=Conversation.of(conversation),
        options=Options(**options),
        stream=stream,
    )
    return Ollama().encode(request, dialect_for("ollama", ""))


def encoded(conversation: Any = "Hi.", **options: Any) -> Json:
    """The body of a call, decoded again."""
    body: Json = json.loads(http_of(conversation, **options).body)
    return body


def line(content: str = "", *, thinking: str | None = None, tool_calls: list[Json] | None = None) -> Json:
    """A line of a stream."""
    message = {"role": "assistant", "content": content, "thinking": thinking, "tool_calls": tool_calls}
    return {"model": "qwen3", "created_at": "2026-01-02T03:04:05Z", "message": message, "done": False}


def lines(*objects: Json) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in objects)


def read(data: bytes, split: int = 0, *, stream: bool = True) -> tuple[Completion, OllamaDecoder]:
    """The completion of a response that arrives in pieces of `split` bytes (0: whole)."""
    request = CompletionRequest(
        profile=ModelProfile(provider="ollama", model="asked"),
        conversation=Conversation.create("?"),
        stream=stream,
    )
    decoder = Ollama().decoder(request, Dialect())
    step = split or max(len(data), 1)
    for start in range(0, len(data), step):
        decoder.feed(data[start : start + step])
    decoder.finish()
    return completion_of(decoder.answer, request), decoder


def failure(data: bytes, *, stream: bool = True) -> LMClientError:
    _, decoder = read(data, stream=stream)
    assert decoder.failure is not None
    return decoder.failure


def test_a_plain_call() -> None:
    http = http_of()
    assert http.url == "http://localhost:11434/api/chat"
    assert json.loads(http.body) == {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "Hi."}],
        "stream": False,
    }


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://h:1", "http://h:1/api/chat"),
        ("http://h:1/", "http://h:1/api/chat"),
        ("http://h:1/v1", "http://h:1/api/chat"),
        ("http://h:1/api/", "http://h:1/api/chat"),
        ("http://h:1/api/chat", "http://h:1/api/chat"),
        ("http://h:1/proxy", "http://h:1/proxy/api/chat"),
    ],
)
def test_every_spelling_of_a_url_leads_to_the_endpoint(url: str, sent: str) -> None:
    assert http_of(profile={"url": url}).url == sent


def test_options_have_a_table_of_their_own() -> None:
    body = encoded(
        profile={"max_tokens": 50, "temperature": 0.5, "top_p": 0.9, "max_context_length": 8192},
        temperature=0.0,
        stop=["END"],
        seed=7,
        extra_body={"options": {"top_k": 3}, "keep_alive": "1m"},
    )
    assert body["options"] == {
        "num_predict": 50,
        "temperature": 0.0,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "num_ctx": 8192,
        "top_k": 3,
    }
    assert body["keep_alive"] == "1m"


def test_a_limit_of_zero_is_the_servers_own() -> None:
    assert "options" not in encoded(max_tokens=0)


@pytest.mark.parametrize(
    ("effort", "think"),
    [
        ("low", "low"),
        ("high", "high"),
        ("minimal", "low"),
        ("none", False),
        ("true", True),
        ("xhigh", "high"),
    ],
)
def test_the_effort_becomes_think(effort: str, think: bool | str) -> None:
    assert encoded(reasoning_effort=effort)["think"] == think
    assert encoded(profile={"reasoning_effort": effort})["think"] == think


def test_a_round_of_tools() -> None:
    turns = [
        Turn("system", "Be short."),
        Turn("user", "Weather?"),
        Turn("assistant", "", reasoning="I look.", tool_calls=[ToolCall("c1", "weather", {"city": "Rom"})]),
        Turn("tool", "Sunny.", tool_call_id="c1"),
    ]
    assert encoded(turns, tools=[WEATHER])["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "",
            "thinking": "I look.",
            "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": {"city": "Rom"}}}],
        },
        {"role": "tool", "content": "Sunny.", "tool_name": "weather", "tool_call_id": "c1"},
    ]


def test_reasoning_of_earlier_answers_stays_out() -> None:
    turns = [Turn("user", "Hi."), Turn("assistant", "Hello.", reasoning="Greet."), Turn("user", "Well?")]
    assert encoded(turns)["messages"][1] == {"role": "assistant", "content": "Hello."}


def test_tools() -> None:
    function = {"name": "weather", "description": "Tells the weather.", "parameters": {"type": "object"}}
    assert encoded(tools=[WEATHER])["tools"] == [{"type": "function", "function": function}]
    assert "tools" not in encoded(tools=[WEATHER], tool_choice="none")


@pytest.mark.parametrize(
    "options", [{"tool_choice": "required"}, {"tool_choice": "weather"}, {"parallel_tool_calls": False}]
)
def test_what_cannot_be_asked_of_tools_is_refused(options: Json) -> None:
    with pytest.raises(UnsupportedOptionError, match="Ollama"):
        encoded(tools=[WEATHER], **options)


def test_images_are_sent_as_base64() -> None:
    parts: list[Any] = [
        TextPart("What?"),
        ImagePart(data=b"abc"),
        ImagePart(url="data:image/png;base64,eHl6"),
    ]
    assert encoded([Turn("user", parts)])["messages"] == [
        {"role": "user", "content": "What?", "images": ["YWJj", "eHl6"]}
    ]


@pytest.mark.parametrize("part", [ImagePart(url="https://h/cat.png"), FilePart(data=b"x")])
def test_images_by_url_and_files_are_refused(part: Any) -> None:
    with pytest.raises(UnsupportedOptionError, match="Ollama"):
        encoded([Turn("user", [part])])


def test_structured_output() -> None:
    structured = pytest.importorskip("lmclient.core.structured")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert encoded(response_format=schema)["format"] == structured.json_schema(schema)


def test_a_stream_is_asked_for_in_the_same_words() -> None:
    options: Json = {"tools": [WEATHER], "reasoning_effort": "low", "seed": 1, "profile": {"max_tokens": 9}}
    assert encoded(stream=True, **options) == {**encoded(**options), "stream": True}


STREAM = [
    line(thinking="Hm – "),
    line(thinking="so."),
    line("Es ist "),
    line("schön."),
    line(tool_calls=[CALL]),
    line(tool_calls=[CALL, {"function": {"name": "clock", "arguments": {}}}]),
    END,
]


@SPLITS
def test_a_stream(split: int) -> None:
    completion, decoder = read(lines(*STREAM), split)
    assert (completion.reasoning, completion.text) == ("Hm – so.", "Es ist schön.")
    assert [(c.name, c.arguments) for c in completion.tool_calls] == [
        ("weather", {"city": "Rom"}),
        ("weather", {"city": "Rom"}),
        ("clock", {}),
    ]
    assert len({call.id for call in completion.tool_calls}) == 3
    assert completion.finish_reason is FinishReason.TOOL_CALLS
    assert completion.model == "qwen3"
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (11, 5)
    assert completion.usage.details == {"total_duration": 300}
    assert decoder.failure is None
    assert decoder.ended


@SPLITS
def test_a_whole_answer_gives_the_same_as_a_stream(split: int) -> None:
    calls = [call for one in STREAM for call in one["message"].get("tool_calls") or ()]
    said = {"content": "Es ist schön.", "thinking": "Hm – so.", "tool_calls": calls}
    answer = {**END, "created_at": STREAM[0]["created_at"], "message": said}
    whole, _ = read(json.dumps(answer, indent=1).encode(), split, stream=False)
    streamed, _ = read(lines(*STREAM), split)
    names = ("text", "reasoning", "tool_calls", "finish_reason", "usage", "model", "id")
    assert {n: getattr(whole, n) for n in names} == {n: getattr(streamed, n) for n in names}


def test_ids_of_calls_differ_from_answer_to_answer() -> None:
    later = {**line(tool_calls=[CALL]), "created_at": "2026-01-02T03:05:00Z"}
    first, _ = read(lines(line(tool_calls=[CALL]), END))
    second, _ = read(lines(later, END))
    assert first.tool_calls[0].id != second.tool_calls[0].id


def test_the_id_that_a_server_gives_is_kept() -> None:
    completion, _ = read(lines(line(tool_calls=[{"id": "c9", **CALL}]), END))
    assert completion.tool_calls[0].id == "c9"


@pytest.mark.parametrize("arguments", [{}, None, "", "{}"])
def test_a_call_without_arguments(arguments: Any) -> None:
    call = {"function": {"name": "clock", "arguments": arguments}}
    completion, _ = read(lines(line(tool_calls=[call]), END))
    assert completion.tool_calls[0].arguments == {}


def test_arguments_that_are_not_json_are_kept_as_text() -> None:
    completion, _ = read(lines(line(tool_calls=[{"function": {"name": "clock", "arguments": "{oops"}}]), END))
    assert (completion.tool_calls[0].arguments, completion.tool_calls[0].raw_arguments) == (None, "{oops")


@pytest.mark.parametrize(
    ("said", "reason", "kept"),
    [
        ("stop", FinishReason.STOP, None),
        ("length", FinishReason.LENGTH, None),
        ("unload", FinishReason.STOP, "unload"),
        (None, FinishReason.UNKNOWN, None),
    ],
)
def test_finish_reasons(said: str | None, reason: FinishReason, kept: str | None) -> None:
    completion, _ = read(lines(line("Hi."), {**END, "done_reason": said}))
    assert completion.finish_reason is reason
    assert completion.metadata.get("finish_reason") == kept


def test_without_counts_the_usage_is_estimated() -> None:
    completion, _ = read(lines(line("Hi."), {"done": True}))
    assert completion.usage.estimated


def test_a_last_line_without_a_line_end_is_read() -> None:
    completion, decoder = read(lines(line("Hi."), END).rstrip(b"\n"))
    assert completion.text == "Hi."
    assert decoder.failure is None


def test_crlf_and_empty_lines_are_harmless() -> None:
    completion, decoder = read(b"\r\n" + lines(line("Hi."), END).replace(b"\n", b"\r\n\r\n"), 1)
    assert (completion.text, decoder.failure) == ("Hi.", None)


def test_separators_of_unicode_are_text() -> None:
    completion, _ = read(lines(line("a\u2028b\u0085c"), END), 1)
    assert completion.text == "a\u2028b\u0085c"


@SPLITS
def test_a_stream_without_done_is_cut(split: int) -> None:
    whole = lines(line("Hi."), END)
    completion, decoder = read(whole[: len(whole) - 40], split)
    assert isinstance(decoder.failure, StreamInterruptedError)
    assert completion.text == "Hi."


def test_nothing_at_all_is_cut() -> None:
    assert isinstance(failure(b""), StreamInterruptedError)


@SPLITS
def test_an_error_inside_a_stream_comes_after_what_was_said(split: int) -> None:
    completion, decoder = read(lines(line("Hi."), {"error": "the model runner has stopped"}), split)
    assert isinstance(decoder.failure, ServerError)
    assert "the model runner has stopped" in str(decoder.failure)
    assert completion.text == "Hi."


def test_an_error_with_a_status() -> None:
    error = Ollama().error(404, {}, b'{"error":"model \'x\' not found"}')
    assert isinstance(error, NotFoundError)
    assert "model 'x' not found" in str(error)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("data", [b"{oops\n", b"[1]\n", b"{}\n", b"<html>\n", b'{"message": "hi"}\n'])
def test_what_is_not_the_protocol_is_a_protocol_error(data: bytes, stream: bool) -> None:
    assert isinstance(failure(data, stream=stream), ProtocolError)


def test_what_follows_the_end_is_passed_over() -> None:
    completion, decoder = read(lines(line("Hi."), END, line("more")) + b"{oops\n")
    assert (completion.text, decoder.failure) == ("Hi.", None)


def test_the_list_of_models() -> None:
    profile = ModelProfile(provider="ollama", url="http://h:1/v1")
    http = Ollama().encode_models(profile, Dialect())
    assert (http.method, http.url) == ("GET", "http://h:1/api/tags")
    assert Ollama().decode_models(b'{"models":[{"name":"qwen3:8b"},{}]}') == ["qwen3:8b"]
    with pytest.raises(ProtocolError, match="models"):
        Ollama().decode_models(b"[]")


def test_capabilities() -> None:
    http = Ollama().encode_show(ModelProfile(provider="ollama", model="qwen3", url="http://h:1"), Dialect())
    assert (http.url, json.loads(http.body)) == ("http://h:1/api/show", {"model": "qwen3"})
    shown = Ollama().decode_capabilities(b'{"capabilities":["completion","tools"]}')
    assert shown == frozenset({"completion", "tools"})
    assert Ollama().decode_capabilities(b'{"template":""}') is None
    with pytest.raises(ProtocolError, match="description"):
        Ollama().decode_capabilities(b"[]")


def test_arguments_that_are_no_object_are_kept_as_text() -> None:
    """D07"""
    call = {"id": "x", "function": {"name": "weather", "arguments": [1]}}
    completion, _ = read(lines(line(tool_calls=[call]), END))
    assert completion.tool_calls == (ToolCall("x", "weather", None, "[1]"),)
