"""Answers of Anthropic's API that the recorded ones do not show: tools, thinking, errors, cuts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.conversation import Conversation, assistant_turn
from lmclient.core.request import CompletionRequest
from lmclient.errors import (
    ContextLengthError,
    LMClientError,
    ProtocolError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.anthropic import Anthropic
from lmclient.protocols.anthropic_messages import WHOLE_CONTENT, encode_messages
from lmclient.protocols.anthropic_stream import AnthropicDecoder
from lmclient.protocols.dialect import Dialect
from lmclient.providers.finishing import completion_of

Json = dict[str, Any]
SPLITS = pytest.mark.parametrize("split", [0, 1, 7])
THINKING: Json = {"type": "thinking", "thinking": "Rome is sunny.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "eA=="}
TEXT: Json = {"type": "text", "text": "I look – twice."}
USE: Json = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rom", "days": [1, 2]}}
USE2: Json = {"type": "tool_use", "id": "t2", "name": "clock", "input": {}}
USAGE: Json = {"input_tokens": 10, "output_tokens": 5}


def message(*content: Json, stop: str | None = "end_turn", usage: Json | None = USAGE, **more: Any) -> Json:
    """A whole answer."""
    return {
        "type": "message",
        "id": "msg_1",
        "model": "claude",
        "content": list(content),
        "stop_reason": stop,
        "usage": usage,
        **more,
    }


def events_of(answer: Json) -> list[Json]:
    """The same answer as the events of a stream, every text in two pieces."""
    head = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(answer["content"]):
        start, deltas = _streamed(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": answer["stop_reason"], "stop_sequence": answer.get("stop_sequence")}
    events.append({"type": "message_delta", "delta": stop, "usage": answer["usage"]})
    return [*events, {"type": "message_stop"}]


def _streamed(block: Json) -> tuple[Json, list[Json]]:
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [
            {"type": "text_delta", "text": text} for text in (block["text"][:3], block["text"][3:])
        ]
    if block["type"] == "thinking":
        thinking = block["thinking"]
        return {"type": "thinking", "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": thinking[:4]},
            {"type": "thinking_delta", "thinking": thinking[4:]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] in ("tool_use", "server_tool_use"):
        raw = json.dumps(block["input"]) if block["input"] else ""
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": part} for part in ("", raw[:5], raw[5:])
        ]
    return block, []


def sse(events: list[Json]) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def read(data: bytes, split: int = 0, **profile: Any) -> tuple[Completion, AnthropicDecoder]:
    """The completion of a response that arrives in pieces of `split` bytes (0: whole)."""
    request = CompletionRequest(
        profile=ModelProfile(provider="anthropic", model="m", **profile),
        conversation=Conversation.create("?"),
        stream=True,
    )
    decoder = Anthropic().decoder(request, Dialect())
    step = split or max(len(data), 1)
    for start in range(0, len(data), step):
        decoder.feed(data[start : start + step])
    decoder.finish()
    return completion_of(decoder.answer, request), decoder


def failure(events: list[Json] | bytes) -> LMClientError:
    _, decoder = read(events if isinstance(events, bytes) else sse(events))
    assert decoder.failure is not None
    return decoder.failure


ANSWERS = [
    message(TEXT),
    message(THINKING, TEXT, USE, USE2, stop="tool_use"),
    message(THINKING, REDACTED, THINKING, USE, stop="tool_use"),
    message({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}}, TEXT),
    message(TEXT, THINKING, USE, stop="tool_use"),
    message(TEXT, stop="refusal"),
    message(TEXT, stop="stop_sequence", stop_sequence="END"),
]


@SPLITS
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_stream_and_a_whole_answer_give_the_same_completion(answer: Json, split: int) -> None:
    streamed, _ = read(sse(events_of(answer)), split)
    whole, _ = read(json.dumps(answer).encode(), split)
    calls = [(c.id, c.name, c.arguments) for c in whole.tool_calls]
    assert [(c.id, c.name, c.arguments) for c in streamed.tool_calls] == calls
    names = ("text", "reasoning", "finish_reason", "usage", "model", "id", "provider_items", "metadata")
    assert {n: getattr(streamed, n) for n in names} == {n: getattr(whole, n) for n in names}


def test_parallel_calls_and_one_without_arguments() -> None:
    completion, _ = read(sse(events_of(message(USE, USE2, stop="tool_use"))))
    assert [(c.id, c.arguments) for c in completion.tool_calls] == [("t1", USE["input"]), ("t2", {})]
    assert completion.finish_reason is FinishReason.TOOL_CALLS


def test_calls_whose_deltas_are_interleaved() -> None:
    events = events_of(message(USE, USE2, stop="tool_use"))
    first = [e for e in events if e.get("index") == 0]
    second = [e for e in events if e.get("index") == 1]
    mixed = [e for pair in zip(first, second, strict=True) for e in pair]
    completion, _ = read(sse([events[0], *mixed, *events[-2:]]))
    assert [(c.id, c.arguments) for c in completion.tool_calls] == [("t1", USE["input"]), ("t2", {})]


def test_input_that_comes_whole_with_the_start_of_its_block() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": USE}
    stop = {"type": "content_block_stop", "index": 0}
    events = events_of(message(stop="tool_use"))
    completion, _ = read(sse([events[0], start, stop, stop, *events[-2:]]))
    assert completion.tool_calls[0].arguments == USE["input"]


def test_tools_of_the_server_are_no_calls_of_the_application() -> None:
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}}
    mcp = {"type": "mcp_tool_use", "id": "m", "name": "ask", "input": {}}
    completion, _ = read(sse(events_of(message(server, mcp, TEXT))))
    assert completion.tool_calls == ()
    assert completion.finish_reason is FinishReason.STOP


@pytest.mark.parametrize("kept", [-1, 12, 0])
def test_a_call_cut_by_the_token_limit_is_not_valid(kept: int) -> None:
    events = events_of(message(USE2, USE, stop="max_tokens"))
    raw = json.dumps(USE["input"])[:kept]
    deltas = [e for e in events if e.get("delta", {}).get("type") == "input_json_delta" and e["index"] == 1]
    for event, piece in zip(deltas, (raw, "", ""), strict=True):
        event["delta"]["partial_json"] = piece
    completion, _ = read(sse(events))
    assert completion.finish_reason is FinishReason.LENGTH
    assert [call.arguments for call in completion.tool_calls] == [{}, None]


@pytest.mark.parametrize("arguments", [{}, {"city": "Ro"}])
def test_a_whole_answer_cut_inside_its_last_call(arguments: Json) -> None:
    cut = message(USE2, {**USE, "input": arguments}, stop="max_tokens")
    completion, _ = read(json.dumps(cut).encode())
    assert completion.finish_reason is FinishReason.LENGTH
    assert [call.arguments for call in completion.tool_calls] == [{}, None]


def test_arguments_that_are_not_json_are_kept_as_text() -> None:
    events = events_of(message(USE, stop="tool_use"))
    events[4]["delta"]["partial_json"] = "[oops"
    completion, _ = read(sse(events))
    assert completion.tool_calls[0].arguments is None
    assert completion.tool_calls[0].raw_arguments.startswith("[oops")


def test_thinking_goes_back_with_the_next_round() -> None:
    completion, _ = read(sse(events_of(message(THINKING, REDACTED, TEXT, USE, stop="tool_use"))))
    assert completion.reasoning == "Rome is sunny."
    assert completion.provider_items == (THINKING, REDACTED)
    messages = encode_messages(Conversation([assistant_turn(completion)]))
    assert messages[0]["content"] == [THINKING, REDACTED, TEXT, USE]


def test_thinking_between_text_and_calls_goes_back_in_its_place() -> None:
    content: list[Json] = [THINKING, TEXT, THINKING, USE]
    completion, _ = read(sse(events_of(message(*content, stop="tool_use"))))
    assert completion.provider_items == ({"type": WHOLE_CONTENT, "content": content},)
    messages = encode_messages(Conversation([assistant_turn(completion)]))
    assert messages[0]["content"] == content


def test_an_answer_without_thinking_leaves_nothing_to_send_back() -> None:
    completion, _ = read(sse(events_of(message(TEXT, USE, USE2, stop="tool_use"))))
    assert completion.provider_items == ()


def test_citations_are_kept() -> None:
    events = events_of(message(TEXT))
    citation = {"type": "char_location", "cited_text": "Rome"}
    delta = {"type": "citations_delta", "citation": citation}
    events.insert(4, {"type": "content_block_delta", "index": 0, "delta": delta})
    completion, _ = read(sse(events))
    assert completion.text == TEXT["text"]
    assert completion.metadata["citations"] == [citation]


def test_reasoning_tags_in_the_text_are_split_if_the_profile_says_so() -> None:
    text = {"type": "text", "text": "<think>Hm.</think>Yes."}
    completion, _ = read(sse(events_of(message(text))), 1, reasoning_tags="think")
    assert (completion.reasoning, completion.text) == ("Hm.", "Yes.")


def test_usage_counts_the_cache_as_input() -> None:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40},
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
        "server_tool_use": {"web_search_requests": 1},
    }
    completion, _ = read(json.dumps(message(TEXT, usage=usage)).encode())
    said = completion.usage
    assert (said.input_tokens, said.cached_input_tokens, said.cache_write_tokens) == (123, 20, 100)
    assert (said.cache_write_1h_tokens, said.output_tokens, said.reasoning_tokens) == (40, 9, 4)
    assert said.details["server_tool_use"] == {"web_search_requests": 1}


def test_later_counts_replace_earlier_ones_and_null_does_not() -> None:
    events = events_of(message(TEXT))
    events[0]["message"]["usage"] = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    events[-2]["usage"] = {"input_tokens": 12, "cache_read_input_tokens": None, "output_tokens": 7}
    completion, _ = read(sse(events))
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (17, 7)


def test_writes_are_counted_where_only_their_lifetimes_are_stated() -> None:
    usage = {
        "input_tokens": 3,
        "cache_creation": {"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 10000},
        "output_tokens": 9,
    }
    said = read(json.dumps(message(TEXT, usage=usage)).encode())[0].usage
    assert (said.input_tokens, said.cache_write_tokens, said.cache_write_1h_tokens) == (12003, 12000, 10000)


def test_a_later_input_of_zero_wipes_nothing() -> None:
    events = events_of(message(TEXT))
    events[0]["message"]["usage"] = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 50_000,
        "output_tokens": 1,
    }
    events[-2]["usage"] = {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 50}
    said = read(sse(events))[0].usage
    assert (said.input_tokens, said.cached_input_tokens, said.output_tokens) == (51_000, 50_000, 50)
    assert not said.estimated


def test_an_output_of_zero_replaces_the_placeholder() -> None:
    events = events_of(message(TEXT))
    events[-2]["usage"] = {"output_tokens": 0}
    said = read(sse(events))[0].usage
    assert (said.output_tokens, said.estimated) == (0, False)


@pytest.mark.parametrize("end", [5, None])
def test_the_placeholder_is_no_count_of_the_output(end: int | None) -> None:
    """Of an answer that was left, or whose end has no usage, the input is known all the same."""
    events = events_of(message({"type": "text", "text": "Many words, " * 20}))
    events[0]["message"]["usage"] = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 50_000,
        "output_tokens": 1,
    }
    events[-2]["usage"] = None
    completion, decoder = read(sse(events[:end]))
    assert isinstance(decoder.failure, StreamInterruptedError if end else type(None))
    said = completion.usage
    assert (said.input_tokens, said.cached_input_tokens, said.estimated) == (51_000, 50_000, True)
    assert said.output_tokens > 40


def test_a_stated_cost_is_read() -> None:
    completion, _ = read(json.dumps(message(TEXT, usage={**USAGE, "cost": 0.5})).encode())
    assert (completion.cost, completion.cost_source) == (Decimal("0.5"), "provider")


@pytest.mark.parametrize("length", range(1, 7))
def test_a_stream_without_its_end_is_cut(length: int) -> None:
    events = events_of(message(TEXT))
    assert isinstance(failure(events[: length + 1][:-1]), StreamInterruptedError)


def test_a_stream_cut_inside_an_event_is_cut() -> None:
    assert isinstance(failure(sse(events_of(message(TEXT))[:-1])[:-30]), StreamInterruptedError)


@pytest.mark.parametrize("lost", [b"", b"event: message_stop\ndata: {"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_stream_that_lacks_only_message_stop_is_whole(answer: Json, lost: bytes) -> None:
    completion, decoder = read(sse(events_of(answer)[:-1]) + lost)
    whole, _ = read(sse(events_of(answer)))
    assert decoder.failure is None
    assert completion == whole


@pytest.mark.parametrize(
    ("kind", "error", "status"),
    [
        ("overloaded_error", ServerError, 529),
        ("rate_limit_error", RateLimitError, 429),
        ("api_error", ServerError, 500),
    ],
)
def test_an_error_inside_a_stream(kind: str, error: type[LMClientError], status: int) -> None:
    said = {"type": "error", "error": {"type": kind, "message": "Not now"}, "request_id": "req_1"}
    completion, decoder = read(sse([*events_of(message(TEXT))[:4], said]), 1)
    assert isinstance(decoder.failure, error)
    assert getattr(decoder.failure, "status", None) == status
    assert getattr(decoder.failure, "request_id", None) == "req_1"
    assert "Not now" in str(decoder.failure)
    assert completion.text == TEXT["text"][:3]
    assert completion.usage.input_tokens == 10


def test_an_error_instead_of_an_answer() -> None:
    said = {"type": "error", "error": {"type": "overloaded_error", "message": "Not now"}}
    assert isinstance(failure(json.dumps(said).encode()), ServerError)


def test_a_prompt_that_is_too_long() -> None:
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}'
    assert isinstance(Anthropic().error(400, {}, body), ContextLengthError)


def test_unknown_events_blocks_and_deltas_are_passed_over() -> None:
    events = events_of(message(TEXT))
    strange: list[Json] = [
        {"type": "message_checkpoint", "delta": "x", "index": "y"},
        {"type": "content_block_start", "index": 9, "content_block": {"type": "hologram"}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "hologram_delta", "text": "no"}},
        {"type": "content_block_stop", "index": 9},
        {"type": "content_block_stop", "index": 77},
        {},
    ]
    data = (
        sse(events[:2]) + b"".join(f"data: {json.dumps(e)}\n\n".encode() for e in strange) + sse(events[2:])
    )
    completion, decoder = read(data)
    assert decoder.failure is None
    assert completion.text == TEXT["text"]


@pytest.mark.parametrize(
    "data",
    [
        b"data: {oops\n\n",
        b"data: [1]\n\n",
        b'data: {"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":"x"}}\n\n',
        b'data: {"type":"content_block_start","content_block":{"type":"text"}}\n\n',
        b'{"type":"message"}',
        b"<html>",
        b'{"content":',
    ],
)
def test_what_is_not_the_protocol_is_a_protocol_error(data: bytes) -> None:
    assert isinstance(failure(data), ProtocolError)


@pytest.mark.parametrize(
    ("said", "reason", "kept"),
    [
        ("end_turn", FinishReason.STOP, False),
        ("max_tokens", FinishReason.LENGTH, False),
        ("model_context_window_exceeded", FinishReason.LENGTH, False),
        ("refusal", FinishReason.CONTENT_FILTER, False),
        ("pause_turn", FinishReason.STOP, True),
        ("tired", FinishReason.STOP, True),
        (None, FinishReason.UNKNOWN, False),
    ],
)
def test_finish_reasons(said: str | None, reason: FinishReason, kept: bool) -> None:
    completion, _ = read(sse(events_of(message(TEXT, stop=said))))
    assert completion.finish_reason is reason
    assert completion.metadata.get("finish_reason") == (said if kept else None)


def test_a_ping_is_no_sign_of_life() -> None:
    _, decoder = read(b'event: ping\ndata: {"type": "ping"}\n\n' * 3)
    assert decoder.events == 0


def test_what_follows_the_end_is_passed_over() -> None:
    completion, decoder = read(sse(events_of(message(TEXT))) + b"data: [DONE]\n\ndata: {oops\n\n")
    assert decoder.failure is None
    assert completion.text == TEXT["text"]


def test_the_list_of_models() -> None:
    body = b'{"data":[{"type":"model","id":"claude-a"},{"id":"claude-b"},{}],"has_more":false}'
    assert Anthropic().decode_models(body) == ["claude-a", "claude-b"]
    with pytest.raises(ProtocolError, match="data"):
        Anthropic().decode_models(b"{}")


def streamed_usage(*usages: Json) -> AnthropicDecoder:
    """The decoder of a stream whose first event and whose later ones state these usages."""
    first, *later = usages
    start = {**message(usage=first), "content": [], "stop_reason": None}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for usage in later:
        events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    decoder = AnthropicDecoder()
    for event in [*events, {"type": "message_stop"}]:
        decoder.feed(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    decoder.finish()
    return decoder


def test_an_input_that_turns_out_to_be_cached_is_counted_once() -> None:
    end = {"input_tokens": 0, "cache_read_input_tokens": 5000, "output_tokens": 20}
    usage = streamed_usage({"input_tokens": 5000, "output_tokens": 1}, end).answer.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == (5000, 5000, 20)


@pytest.mark.parametrize(("again", "written_1h"), [(2000, 1500), (500, 0)])
def test_how_long_the_cache_keeps_counts_for_the_same_sum_alone(again: int, written_1h: int) -> None:
    start = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 2000,
        "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 1500},
        "output_tokens": 1,
    }
    end = {"input_tokens": 3, "cache_creation_input_tokens": again, "output_tokens": 20}
    usage = streamed_usage(start, end).answer.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_write_tokens) == (3 + again, again)
    assert usage.cache_write_1h_tokens == written_1h


def test_a_cost_that_was_stated_early_is_not_that_of_the_end() -> None:
    start = {"input_tokens": 3, "output_tokens": 1, "cost": 0.000001}
    assert streamed_usage(start, {"output_tokens": 500}).answer.cost is None


def test_an_output_that_was_counted_stays_counted() -> None:
    start = {"input_tokens": 3, "output_tokens": 1}
    answer = streamed_usage(start, {"output_tokens": 12}, {"input_tokens": 3}).answer
    assert answer.usage is not None
    assert (answer.usage.output_tokens, answer.counts_output) == (12, True)
