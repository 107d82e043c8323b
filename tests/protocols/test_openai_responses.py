"""How answers of OpenAI's Responses are read: what recordings do not show."""

import json
from decimal import Decimal

import pytest

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.conversation import Conversation
from lmclient.core.request import CompletionRequest
from lmclient.core.usage import Usage
from lmclient.errors import ContentFilterError, ProtocolError, RateLimitError, ServerError
from lmclient.errors import StreamInterruptedError as Interrupted
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.openai_responses import OpenAIResponses
from lmclient.providers.dialects import OPENAI

REQUEST = CompletionRequest(
    profile=ModelProfile(provider="openai-responses", model="asked"),
    conversation=Conversation.create("x"),
    stream=True,
)
DONE = {"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed"}}


def sse(*events):
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def completion_of(answer):
    """What has been read, as the client hands it out."""
    return Completion(
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls(),
        finish_reason=answer.outcome(),
        usage=answer.usage or Usage(),
        provider_items=tuple(answer.provider_items),
        metadata=answer.metadata,
    )


def read(data):
    """The decoder, the completion and the chunks of a body."""
    decoder = OpenAIResponses().decoder(REQUEST, OPENAI)
    chunks = decoder.feed(data) + decoder.finish()
    return decoder, completion_of(decoder.answer), chunks


def text(delta, **fields):
    return {"type": "response.output_text.delta", "output_index": 0, "delta": delta, **fields}


def call_events(*arguments, index=0, **fields):
    item = {"type": "function_call", "call_id": f"call_{index}", "name": "weather", "arguments": ""}
    kind = "response.function_call_arguments.delta"
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item},
        *({"type": kind, "output_index": index, "delta": part} for part in arguments),
        *({**event, "output_index": index} for event in fields.get("then", ())),
    ]


def whole(*output, **fields):
    return json.dumps({"id": "r", "model": "m", "status": "completed", "output": output, **fields}).encode()


def message(*parts):
    return {"type": "message", "role": "assistant", "content": list(parts)}


def test_unknown_events_are_passed_over():
    unknown = {"type": "response.audio.delta", "delta": "zzz", "output_index": 0}
    decoder, completion, _ = read(sse({"type": "keepalive"}, unknown, text("Hi"), DONE))
    assert decoder.failure is None
    assert completion.text == "Hi"


def test_stream_without_a_terminal_event_is_interrupted():
    decoder, completion, chunks = read(sse(text("Hi")))
    assert isinstance(decoder.failure, Interrupted)
    assert completion.text == chunks[0].text == "Hi"


def test_done_marker_alone_does_not_complete_a_stream():
    decoder, _, _ = read(sse(text("Hi")) + b"data: [DONE]\n\n")
    assert isinstance(decoder.failure, Interrupted)


def test_done_marker_after_the_end_is_passed_over():
    decoder, _, _ = read(sse(text("Hi"), DONE) + b"data: [DONE]\n\n")
    assert decoder.failure is None


@pytest.mark.parametrize("data", [b"data: {broken\n\n", b"data: []\n\n", b"data: 5\n\n"])
def test_malformed_event_is_a_protocol_error_after_what_came_before(data):
    decoder, completion, chunks = read(sse(text("Hi")) + data + sse(DONE))
    assert isinstance(decoder.failure, ProtocolError)
    assert completion.text == chunks[0].text == "Hi"


@pytest.mark.parametrize("data", [b"{}", b"[]", b"null", b'{"object": "list"}', b"<html>", b""])
def test_body_that_is_no_response_is_an_error(data):
    decoder, _, _ = read(data)
    assert isinstance(decoder.failure, ProtocolError | Interrupted)


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "response.output_item.done", "item": None},
        {"type": "response.output_item.added", "item": 5},
        {"type": "response.output_text.delta", "delta": None},
        {"type": "response.reasoning_summary_text.delta", "delta": 7},
        {"type": "response.created", "response": []},
    ],
)
def test_event_with_fields_of_another_type_does_no_harm(broken):
    decoder, completion, _ = read(sse(broken, text("Hi"), DONE))
    assert decoder.failure is None
    assert completion.text == "Hi"


@pytest.mark.parametrize(
    ("status", "details", "reason"),
    [
        ("completed", None, FinishReason.STOP),
        ("incomplete", {"reason": "max_output_tokens"}, FinishReason.LENGTH),
        ("incomplete", {"reason": "content_filter"}, FinishReason.CONTENT_FILTER),
        ("incomplete", None, FinishReason.LENGTH),
        ("queued", None, FinishReason.UNKNOWN),
        ("in_progress", None, FinishReason.UNKNOWN),
        ("cancelled", None, FinishReason.ERROR),
    ],
)
def test_status_gives_the_finish_reason(status, details, reason):
    _, completion, _ = read(whole(status=status, incomplete_details=details))
    assert completion.finish_reason is reason


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"status": "paused"}, "paused"),
        ({"status": "incomplete", "incomplete_details": {"reason": "bored"}}, "bored"),
    ],
)
def test_unknown_finish_reason_is_an_error_and_kept(fields, said):
    _, completion, _ = read(whole(**fields))
    assert completion.finish_reason is FinishReason.ERROR
    assert completion.metadata["finish_reason"] == said


FAILED = {"status": "failed", "error": {"code": "server_error", "message": "Oops."}}


@pytest.mark.parametrize(
    "data",
    [
        sse(text("Hi"), {"type": "response.failed", "response": FAILED}),
        sse(text("Hi"), {"type": "error", "code": "server_error", "message": "Oops."}),
        sse(text("Hi"), {"type": "error", "error": FAILED["error"]}),
        sse(text("Hi")) + b'data: {"error": {"code": "server_error", "message": "Oops."}}\n\n',
    ],
    ids=["failed", "flat", "nested", "bare"],
)
def test_error_in_a_stream_comes_after_the_text_before_it(data):
    decoder, _, chunks = read(data)
    assert isinstance(decoder.failure, ServerError)
    assert "Oops." in str(decoder.failure)
    assert [chunk.text for chunk in chunks] == ["Hi"]


def test_failed_response_without_a_stream_is_an_error():
    decoder, completion, _ = read(whole(**FAILED))
    assert isinstance(decoder.failure, ServerError)
    assert completion.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize(
    ("code", "kind"),
    [("rate_limit_exceeded", RateLimitError), ("content_policy_violation", ContentFilterError)],
)
def test_code_of_an_error_event_gives_its_class(code, kind):
    decoder, _, _ = read(sse({"type": "error", "code": code, "message": "No."}))
    assert isinstance(decoder.failure, kind)


def test_error_that_is_only_text():
    decoder, _, _ = read(b'{"error": "model is loading"}')
    assert "model is loading" in str(decoder.failure)


def test_refusal_is_text():
    streamed = sse({"type": "response.refusal.delta", "output_index": 0, "delta": "I can't."}, DONE)
    assert read(streamed)[1].text == "I can't."
    assert read(whole(message({"type": "refusal", "refusal": "I can't."})))[1].text == "I can't."


REASONING = {
    "type": "reasoning",
    "id": "rs",
    "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
    "content": [{"type": "reasoning_text", "text": "Three."}],
}


def reasoning_events():
    summary = "response.reasoning_summary_text.delta"
    return [
        {"type": summary, "output_index": 0, "summary_index": 0, "delta": "O"},
        {"type": summary, "output_index": 0, "summary_index": 0, "delta": "ne."},
        {"type": summary, "output_index": 0, "summary_index": 1, "delta": ""},
        {"type": summary, "output_index": 0, "summary_index": 1, "delta": "Two."},
        {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "Three."},
        {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
    ]


def test_reasoning_is_the_same_streamed_or_not():
    _, streamed, chunks = read(sse(*reasoning_events(), text("Hi", output_index=1), DONE))
    _, plain, _ = read(whole(REASONING, message({"type": "output_text", "text": "Hi"})))
    assert streamed.reasoning == plain.reasoning == "One.\n\nTwo.\n\nThree."
    assert "".join(chunk.reasoning for chunk in chunks) == streamed.reasoning
    assert streamed.text == plain.text == "Hi"


def test_two_reasoning_items_are_apart_by_a_blank_line():
    second = {**REASONING, "id": "rs2", "content": None, "summary": [{"text": "Four."}]}
    done = {"type": "response.output_item.done", "output_index": 1, "item": second}
    _, streamed, _ = read(sse(*reasoning_events(), done, DONE))
    _, plain, _ = read(whole(REASONING, second))
    assert streamed.reasoning == plain.reasoning == "One.\n\nTwo.\n\nThree.\n\nFour."


def test_items_are_kept_for_the_next_turn_streamed_or_not():
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
    done = {"type": "response.output_item.done", "output_index": 1, "item": call}
    _, streamed, _ = read(sse(*reasoning_events(), done, DONE))
    _, plain, _ = read(whole(REASONING, call))
    assert streamed.provider_items == plain.provider_items == (REASONING, call)
    assert streamed.tool_calls == plain.tool_calls


def test_plain_text_keeps_no_items():
    assert read(whole(message({"type": "output_text", "text": "Hi"})))[1].provider_items == ()


@pytest.mark.parametrize("arguments", ["", "{}", "null", None, {}])
def test_call_without_arguments_is_valid_however_that_is_said(arguments):
    call = {"type": "function_call", "call_id": "c", "name": "clock", "arguments": arguments}
    _, completion, _ = read(whole(call))
    assert completion.tool_calls[0].arguments == {}
    assert completion.finish_reason is FinishReason.TOOL_CALLS


def test_arguments_that_are_not_json_are_kept_as_text():
    call = {"type": "function_call", "call_id": "c", "name": "clock", "arguments": "now!"}
    _, completion, _ = read(whole(call))
    assert completion.tool_calls[0].arguments is None
    assert completion.tool_calls[0].raw_arguments == "now!"


def test_calls_come_whole_and_once_when_the_response_is_over():
    item = {"type": "function_call", "call_id": "call_0", "name": "weather", "arguments": '{"a":1}'}
    repeated = [
        {"type": "response.function_call_arguments.done", "arguments": '{"a":1}'},
        {"type": "response.output_item.done", "item": item},
    ]
    final = {**DONE, "response": {**DONE["response"], "output": [item]}}
    _, completion, chunks = read(sse(*call_events('{"a"', ":1}", then=repeated), final))
    assert [chunk.tool_calls for chunk in chunks] == [completion.tool_calls]
    assert [call.arguments for call in completion.tool_calls] == [{"a": 1}]


def test_interleaved_calls_stay_apart():
    first, second = call_events('{"n":', "1}"), call_events('{"n":', "2}", index=1)
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    _, completion, _ = read(sse(*mixed, DONE))
    assert [call.arguments for call in completion.tool_calls] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("arguments", [(), ('{"city": "R',)])
@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_call_that_was_cut_off_is_not_valid(arguments, reason):
    end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    _, completion, _ = read(sse(*call_events(*arguments), {"type": "response.incomplete", "response": end}))
    assert completion.tool_calls[0].arguments is None
    assert completion.finish_reason is not FinishReason.TOOL_CALLS


def test_call_that_is_cut_off_by_the_end_of_the_stream_is_not_valid():
    assert read(sse(*call_events()))[1].tool_calls[0].arguments is None


def test_stream_of_a_server_that_names_no_positions():
    item = {"type": "function_call", "call_id": "fc_1", "name": "weather", "status": "in_progress"}
    said = {**message({"type": "output_text", "text": "Hi"}), "id": "msg_1"}
    _, completion, _ = read(
        sse(
            {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Hi"},
            {"type": "response.output_item.added", "item": item},
            {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"a":1}'},
            {"type": "response.output_item.done", "item": said},
            {"type": "response.output_item.done", "item": {**item, "arguments": '{"a":1}'}},
            {"type": "response.completed", "response": {"status": "completed", "output": [said]}},
        )
    )
    assert completion.text == "Hi"
    assert [call.arguments for call in completion.tool_calls] == [{"a": 1}]


def test_stream_that_has_everything_only_in_its_last_event():
    call = {"type": "function_call", "call_id": "c", "name": "clock", "arguments": "{}"}
    output = [REASONING, message({"type": "output_text", "text": "Hi"}), call]
    _, completion, chunks = read(sse({**DONE, "response": {"status": "completed", "output": output}}))
    assert (completion.text, completion.reasoning) == ("Hi", "One.\n\nTwo.\n\nThree.")
    assert [bool(chunk.tool_calls) for chunk in chunks] == [False, True]


def test_cached_and_reasoning_tokens_are_found_under_other_names_and_beside_the_output():
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cache_read_input_tokens": 900, "cache_creation_input_tokens": 80},
        "output_tokens": 100,
        "output_tokens_details": {"reasoning_tokens": 2000},
        "total_tokens": 3100,
    }
    counted = read(whole(usage=usage))[1].usage
    assert (counted.cached_input_tokens, counted.cache_write_tokens) == (900, 80)
    assert (counted.input_tokens, counted.output_tokens, counted.reasoning_tokens) == (1000, 2100, 2000)


@pytest.mark.parametrize(
    "stated", [{"cost": 0.5}, {"cost": {"total_cost": 0.5}}, {"cost_in_usd_ticks": 5 * 10**9}]
)
def test_a_stated_cost_is_read(stated):
    usage = {"input_tokens": 1, "output_tokens": 1, **stated}
    assert read(whole(usage=usage))[0].answer.cost == Decimal("0.5")


@pytest.mark.parametrize(("asked", "tier"), [("priority", "priority"), ("auto", None), (None, None)])
def test_the_tier_of_an_answer_that_breaks_off_is_known(asked, tier):
    created = {"type": "response.created", "response": {"id": "r", "model": "m", "service_tier": asked}}
    assert read(sse(created, text("Hi")))[1].metadata.get("service_tier") == tier


def test_the_tier_that_served_the_answer_is_the_last():
    created = {"type": "response.created", "response": {"service_tier": "priority"}}
    done = {**DONE, "response": {**DONE["response"], "service_tier": "default"}}
    assert read(sse(created, text("Hi"), done))[1].metadata["service_tier"] == "default"


def test_usage_keeps_what_has_no_field():
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens": 6,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 16,
        "video_tokens": 3,
    }
    _, completion, _ = read(whole(usage=usage))
    read_counts = completion.usage
    assert (read_counts.input_tokens, read_counts.cached_input_tokens) == (10, 4)
    assert (read_counts.cache_write_tokens, read_counts.output_tokens) == (2, 6)
    assert (read_counts.reasoning_tokens, read_counts.details["video_tokens"]) == (5, 3)
