"""How Gemini's answers are read: what recordings do not show."""

import json

import pytest

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.conversation import Conversation, assistant_turn
from lmclient.core.request import CompletionRequest
from lmclient.core.usage import Usage
from lmclient.errors import AuthenticationError, ProtocolError, RateLimitError, ServerError
from lmclient.errors import StreamInterruptedError as Interrupted
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.gemini import Gemini
from lmclient.protocols.gemini_contents import encode_contents
from lmclient.providers.dialects import GEMINI

REQUEST = CompletionRequest(
    profile=ModelProfile(provider="gemini", model="asked"),
    conversation=Conversation.create("x"),
    stream=True,
)


def response(*parts, finish=None, **fields):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r", "modelVersion": "m", **fields}


def sse(*responses):
    return "".join(f"data: {json.dumps(r)}\r\n\r\n" for r in responses).encode()


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
    decoder = Gemini().decoder(REQUEST, GEMINI)
    chunks = decoder.feed(data) + decoder.finish()
    return decoder, completion_of(decoder.answer), chunks


def whole(*parts, finish="STOP", **fields):
    return json.dumps(response(*parts, finish=finish, **fields)).encode()


def call(name="weather", **fields):
    return {"functionCall": {"name": name, **fields}}


HI = {"text": "Hi"}
PARTS = (
    {"text": "Let me ", "thought": True},
    {"text": "think.", "thought": True},
    {"text": "I will "},
    {"text": "look."},
    {**call(args={"a": 1}), "thoughtSignature": "c2ln"},
    call("clock"),
)


def test_stream_without_a_finish_reason_is_interrupted():
    decoder, completion, chunks = read(sse(response(HI)))
    assert isinstance(decoder.failure, Interrupted)
    assert completion.text == chunks[0].text == "Hi"


def test_usage_after_the_finish_reason_counts():
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2}
    _, completion, _ = read(sse(response(HI, finish="STOP"), {"usageMetadata": usage}))
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (3, 2)


def test_last_usage_counts_and_not_the_sum():
    usages = [{"promptTokenCount": 3, "candidatesTokenCount": n} for n in (1, 5)]
    events = [response(HI, usageMetadata=usage) for usage in usages]
    assert read(sse(*events, response(finish="STOP")))[1].usage.output_tokens == 5


def test_output_that_only_the_total_counts_is_not_free():
    usage = read(whole(HI, usageMetadata={"promptTokenCount": 1000, "totalTokenCount": 1500}))[1].usage
    assert (usage.input_tokens, usage.output_tokens) == (1000, 500)


def test_without_candidates_in_the_usage_the_output_is_not_counted():
    decoder, _, _ = read(sse(response(HI, usageMetadata={"promptTokenCount": 1000})))
    answer = decoder.answer
    assert (answer.usage.input_tokens, answer.counts_input, answer.counts_output) == (1000, True, False)


def test_thoughts_and_what_tools_read_are_part_of_the_usage():
    usage = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
        "trafficType": "ON_DEMAND",
    }
    counted = read(whole(HI, usageMetadata=usage))[1].usage
    assert (counted.input_tokens, counted.cached_input_tokens) == (15, 4)
    assert (counted.output_tokens, counted.reasoning_tokens) == (5, 2)
    assert counted.details == {"toolUsePromptTokenCount": 5, "trafficType": "ON_DEMAND"}


def test_answer_is_the_same_streamed_or_not():
    _, streamed, chunks = read(sse(*(response(part) for part in PARTS), response(finish="STOP")))
    _, plain, _ = read(whole(*PARTS))
    assert streamed.reasoning == plain.reasoning == "Let me think."
    assert streamed.text == plain.text == "I will look."
    assert streamed.tool_calls == plain.tool_calls
    assert streamed.provider_items == plain.provider_items
    assert "".join(chunk.text for chunk in chunks) == plain.text
    assert "".join(chunk.reasoning for chunk in chunks) == plain.reasoning


def test_parts_go_back_as_they_came_with_one_part_per_text():
    _, completion, _ = read(sse(*(response(part) for part in PARTS), response(finish="STOP")))
    _, contents = encode_contents([assistant_turn(completion)], signatures=True)
    assert contents[0]["parts"] == [
        {"text": "Let me think.", "thought": True},
        {"text": "I will look."},
        *PARTS[4:],
    ]


def test_signature_on_an_empty_text_is_kept():
    signature = {"text": "", "thoughtSignature": "c2ln"}
    _, completion, _ = read(sse(response(HI), response({"text": "!"}), response(signature, finish="STOP")))
    assert completion.provider_items == ({"text": "Hi!"}, signature)


def test_signed_text_is_not_joined_with_other_text():
    signed = {"text": " you", "thoughtSignature": "c2ln"}
    _, completion, _ = read(sse(response(HI), response(signed), response({"text": "!"}, finish="STOP")))
    assert completion.text == "Hi you!"
    assert completion.provider_items == (HI, signed, {"text": "!"})


def test_plain_text_keeps_no_parts():
    assert read(whole(HI))[1].provider_items == ()


def test_call_without_an_id_gets_the_same_one_streamed_or_not():
    _, streamed, _ = read(sse(response(call(args={"a": 1}), finish="STOP")))
    _, plain, _ = read(whole(call(args={"a": 1})))
    assert streamed.tool_calls[0].id == plain.tool_calls[0].id != ""


def test_equal_calls_without_ids_are_two_calls():
    _, completion, _ = read(whole(call(args={"a": 1}), call(args={"a": 1})))
    assert len({call.id for call in completion.tool_calls}) == 2


def test_call_that_the_last_event_repeats_is_one_call():
    part = call(args={"a": 1}, id="g1")
    _, completion, chunks = read(sse(response(part), response(part, finish="STOP")))
    assert len(completion.tool_calls) == len(completion.provider_items) == 1
    assert [chunk.tool_calls for chunk in chunks] == [completion.tool_calls]


@pytest.mark.parametrize("fields", [{}, {"args": None}, {"args": {}}])
def test_call_without_arguments_is_valid_however_that_is_said(fields):
    assert read(whole(call(**fields)))[1].tool_calls[0].arguments == {}


def test_arguments_that_are_no_object_are_kept_as_text():
    _, completion, _ = read(whole(call(args=[1])))
    assert completion.tool_calls[0].arguments is None
    assert completion.tool_calls[0].raw_arguments == "[1]"


@pytest.mark.parametrize("finish", ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"])
def test_call_that_was_cut_off_is_not_valid(finish):
    _, completion, _ = read(whole(call(), finish=finish))
    assert completion.tool_calls[0].arguments is None
    assert completion.finish_reason is not FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("RECITATION", FinishReason.CONTENT_FILTER),
        ("PROHIBITED_CONTENT", FinishReason.CONTENT_FILTER),
        ("IMAGE_SAFETY", FinishReason.CONTENT_FILTER),
        ("FINISH_REASON_UNSPECIFIED", FinishReason.UNKNOWN),
    ],
)
def test_finish_reason(said, reason):
    assert read(whole(HI, finish=said))[1].finish_reason is reason


@pytest.mark.parametrize("said", ["MALFORMED_FUNCTION_CALL", "LANGUAGE", "SOMETHING_NEW"])
def test_finish_reason_that_means_a_failure_is_kept_with_its_message(said):
    body = response(HI, finish=said)
    body["candidates"][0]["finishMessage"] = "Because."
    _, completion, _ = read(json.dumps(body).encode())
    assert completion.finish_reason is FinishReason.ERROR
    assert completion.metadata == {"finish_reason": said, "finish_message": "Because."}


BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}


@pytest.mark.parametrize("data", [sse(BLOCKED), json.dumps(BLOCKED).encode()], ids=["stream", "plain"])
def test_blocked_prompt_is_content_filtered(data):
    decoder, completion, _ = read(data)
    assert decoder.failure is None
    assert completion.finish_reason is FinishReason.CONTENT_FILTER
    assert completion.metadata["block_reason"] == "SAFETY"


def test_only_the_first_candidate_is_read():
    body = response(HI, finish="STOP")
    body["candidates"].append({"index": 1, "content": {"parts": [{"text": "Other"}]}})
    assert read(json.dumps(body).encode())[1].text == "Hi"


def test_list_of_responses_is_one_answer():
    data = json.dumps([response(HI), response({"text": "!"}, finish="STOP")]).encode()
    decoder, completion, _ = read(data)
    assert decoder.failure is None
    assert completion.text == "Hi!"


def test_unknown_parts_and_fields_are_passed_over():
    _, completion, _ = read(whole({"hologram": {}}, HI, usageMetadata=[], groundingMetadata={}))
    assert completion.text == "Hi"


@pytest.mark.parametrize("data", [b"data: {broken\n\n", b"data: []\n\n", b"data: 5\n\n"])
def test_malformed_event_is_a_protocol_error_after_what_came_before(data):
    decoder, _, chunks = read(sse(response(HI)) + data)
    assert isinstance(decoder.failure, ProtocolError)
    assert [chunk.text for chunk in chunks] == ["Hi"]


@pytest.mark.parametrize("data", [b"{}", b"[]", b"null", b"[5]", b'{"models": []}', b"<html>", b""])
def test_body_that_is_no_response_is_an_error(data):
    assert isinstance(read(data)[0].failure, ProtocolError | Interrupted)


ERROR = {"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize("end", [b"\n\n", b""])
def test_error_in_a_stream_comes_after_the_text_before_it(end):
    decoder, _, chunks = read(sse(response(HI)) + b"data: " + json.dumps(ERROR).encode() + end)
    assert isinstance(decoder.failure, ServerError)
    assert decoder.failure.status == 503
    assert "Overloaded." in str(decoder.failure)
    assert [chunk.text for chunk in chunks] == ["Hi"]


@pytest.mark.parametrize("body", [ERROR, [ERROR]], ids=["object", "list"])
def test_error_response(body):
    error = Gemini().error(503, {}, json.dumps(body).encode())
    assert isinstance(error, ServerError)
    assert "Overloaded." in str(error)


def test_wrong_key_is_an_authentication_error():
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    said = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": details}
    error = Gemini().error(400, {}, json.dumps({"error": said}).encode())
    assert isinstance(error, AuthenticationError)
    assert (error.status, error.code) == (400, "API_KEY_INVALID")


@pytest.mark.parametrize(("said", "seconds"), [("38.5s", 38.5), ("2s", 2.0), ("soon", None), ("-1s", None)])
def test_delay_that_the_body_asks_for(said, seconds):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": said}]
    body = {"error": {"code": 429, "message": "Slow.", "status": "RESOURCE_EXHAUSTED", "details": details}}
    error = Gemini().error(429, {}, json.dumps(body).encode())
    assert isinstance(error, RateLimitError)
    assert error.retry_after == seconds


def test_error_that_is_no_json():
    assert "Bad Gateway" in str(Gemini().error(502, {}, b"<html><title>502 Bad Gateway</title>"))
