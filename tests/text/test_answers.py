"""Text completion: what is read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from lmclient import AsyncClient, Conversation, FinishReason, ModelProfile, StreamInterruptedError, prompts
from lmclient.core.request import CompletionRequest
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.openai_text import OpenAIText, ServedFormat


async def test_text_usage_and_finish_reason_are_read(client: AsyncClient, llama: Any) -> None:
    completion = await client.complete(llama.profile(), "Hi")
    assert (completion.text, completion.reasoning) == ("Red.", "")
    assert completion.finish_reason is FinishReason.STOP
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (7, 2)
    assert (completion.id, completion.model) == ("cmpl-1", "m")


async def test_a_stream_shows_each_piece(client: AsyncClient, llama: Any) -> None:
    llama.pieces = ["Re", "d", "."]
    async with client.stream(llama.profile(), "Hi") as stream:
        assert [chunk.text async for chunk in stream] == ["Re", "d", "."]
    assert stream.completion.text == "Red."
    assert stream.completion.usage.input_tokens == 7


async def test_usage_comes_from_llama_cpps_timings_where_there_is_no_other(
    client: AsyncClient, llama: Any
) -> None:
    llama.end = {"timings": {"cache_n": 3, "prompt_n": 4, "predicted_n": 5}}
    usage = (await client.complete(llama.profile(), "Hi")).usage
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == (7, 3, 5)


async def test_an_answer_cut_by_the_limit_names_it(client: AsyncClient, llama: Any) -> None:
    llama.finish_reason = "length"
    completion = await client.complete(llama.profile(max_tokens=2), "Hi")
    assert completion.finish_reason is FinishReason.LENGTH
    assert completion.metadata["max_tokens"] == 2


async def test_an_answer_that_ends_by_itself_names_no_limit(client: AsyncClient, llama: Any) -> None:
    assert "max_tokens" not in (await client.complete(llama.profile(max_tokens=2), "Hi")).metadata


async def test_a_stop_string_that_came_through_is_cut(client: AsyncClient, llama: Any) -> None:
    llama.pieces = ["Red.", "<|im_", "end|>\n<|im_start|>user\nMore?"]
    async with client.stream(llama.profile(), "Hi") as stream:
        assert "".join([chunk.text async for chunk in stream]) == "Red."
    assert (await client.complete(llama.profile(), "Hi")).text == "Red."


async def test_a_stop_string_of_the_call_that_came_through_is_cut(client: AsyncClient, llama: Any) -> None:
    llama.pieces = ["Red.E", "ND of it"]
    assert (await client.complete(llama.profile(prompt_format="no"), "Hi", stop="END")).text == "Red."


async def test_reasoning_is_split_off(client: AsyncClient, llama: Any) -> None:
    llama.pieces = ["<thi", "nk>\nHm", "m.\n</th", "ink>\n\nRed."]
    completion = await client.complete(llama.profile(prompt_format="qwen3"), "Hi")
    assert (completion.reasoning, completion.text) == ("Hmm.", "Red.")


async def test_reasoning_that_the_prompt_opened_is_split_off(client: AsyncClient, llama: Any) -> None:
    llama.pieces = ["Hm", "m.\n</th", "ink>\n\nRed."]
    completion = await client.complete(llama.profile(prompt_format="deepseek-r1"), "Hi")
    assert (completion.reasoning, completion.text) == ("Hmm.", "Red.")


async def test_without_thinking_the_answer_is_text_from_the_beginning(
    client: AsyncClient, llama: Any
) -> None:
    profile = llama.profile(prompt_format="qwen3.5", reasoning_effort="none")
    completion = await client.complete(profile, "Hi")
    assert (completion.reasoning, completion.text) == ("", "Red.")


async def test_the_profiles_reasoning_tags_replace_the_formats_markers(
    client: AsyncClient, llama: Any
) -> None:
    llama.pieces = ["<idea>Hmm.</idea>Red.<|im_end|>"]
    completion = await client.complete(llama.profile(reasoning_tags="idea"), "Hi")
    assert (completion.reasoning, completion.text) == ("Hmm.", "Red.")


async def test_a_stream_that_stops_before_its_end_is_no_answer(client: AsyncClient, llama: Any) -> None:
    llama.finish_reason = None
    llama._stream = lambda: b'data: {"choices":[{"text":"Re","finish_reason":null}]}\n\n'
    with pytest.raises(StreamInterruptedError) as caught:
        async with client.stream(llama.profile(), "Hi") as stream:
            await stream.wait()
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Re"


async def test_two_callers_at_once_get_their_own_answers(client: AsyncClient, llama: Any) -> None:
    llama.pieces = ["<think>Hmm.</think>Red."]
    profiles = [llama.profile(prompt_format=name) for name in ("qwen3", "no")] * 4
    completions = await asyncio.gather(*(client.complete(profile, "Hi") for profile in profiles))
    assert [completion.text for completion in completions] == ["Red.", "<think>Hmm.</think>Red."] * 4


RAW = "<|channel|>analysis<|message|>Hmm…<|end|><|start|>assistant<|channel|>final<|message|>Réd.<|return|>"


@pytest.mark.parametrize("cut", range(len(RAW)))
def test_the_result_does_not_depend_on_where_the_answer_is_cut(cut: int) -> None:
    events = [{"choices": [{"text": text}]} for text in (RAW[:cut], RAW[cut:])]
    decoder = _decoder("gpt-oss")
    chunks = [chunk for event in events for chunk in decoder.feed(f"data: {json.dumps(event)}\n\n".encode())]
    chunks += decoder.feed(b'data: {"choices":[{"text":"","finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    chunks += decoder.finish()
    assert decoder.failure is None
    assert (decoder.answer.reasoning, decoder.answer.text) == ("Hmm…", "Réd.")
    assert "".join(chunk.text for chunk in chunks) == "Réd."


CALL = (
    "<|channel|>analysis<|message|>Ask.<|end|><|start|>assistant<|channel|>commentary to=functions.weather"
    ' <|constrain|>json<|message|>{"city":"Rome"}'
)


@pytest.mark.parametrize("end", ["", "<|call|>"])
async def test_a_call_in_the_text_of_gpt_oss_is_a_tool_call(
    client: AsyncClient, llama: Any, end: str
) -> None:
    llama.pieces = [CALL[:90], CALL[90:], end]
    profile = llama.profile(prompt_format="gpt-oss")
    whole = await client.complete(profile, "Weather?")
    async with client.stream(profile, "Weather?") as stream:
        shown = [call for chunk in [chunk async for chunk in stream] for call in chunk.tool_calls]
    assert (whole.text, whole.reasoning, whole.finish_reason) == ("", "Ask.", FinishReason.TOOL_CALLS)
    assert [(call.name, call.arguments) for call in whole.tool_calls] == [("weather", {"city": "Rome"})]
    assert stream.completion.tool_calls == tuple(shown)
    assert shown[0].arguments == {"city": "Rome"}


async def test_a_call_in_the_text_that_the_limit_cut_is_not_valid(client: AsyncClient, llama: Any) -> None:
    llama.pieces, llama.finish_reason = [CALL[:-3]], "length"
    completion = await client.complete(llama.profile(prompt_format="gpt-oss"), "Weather?")
    assert completion.finish_reason is FinishReason.LENGTH
    [call] = completion.tool_calls
    assert (call.name, call.arguments) == ("weather", None)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_the_result_does_not_depend_on_how_the_bytes_are_cut(size: int) -> None:
    body = json.dumps({"choices": [{"text": RAW, "finish_reason": "stop"}]}).encode()
    decoder = _decoder("gpt-oss")
    for start in range(0, len(body), size):
        decoder.feed(body[start : start + size])
    decoder.finish()
    assert (decoder.answer.reasoning, decoder.answer.text) == ("Hmm…", "Réd.")


def _decoder(name: str) -> Any:
    profile = ModelProfile(provider="openai-text", model="m", prompt_format=name)
    request = CompletionRequest(profile=profile, conversation=Conversation.create("Hi"), stream=True)
    return OpenAIText(lambda profile: ServedFormat(prompts.get(name))).decoder(request, Dialect())
