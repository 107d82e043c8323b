"""Fitting into `max_context_length`, on a server whose tokens are words."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lmclient import AsyncClient, ContextOverflowError, Conversation, ModelProfile, Role, ToolCall, Turn
from lmclient.core.request import CompletionRequest, Options
from lmclient.providers.counting import count_request
from lmclient.providers.fitting import at_most, fit

ROUND = 10


def rounds(number: int, system: str | None = None) -> Conversation:
    """Rounds of twice five words; the last one has no answer yet."""
    turns = [Turn(Role.SYSTEM, system)] if system else []
    for index in range(number):
        turns += [Turn(Role.USER, f"question {index} a b c"), Turn(Role.ASSISTANT, f"answer {index} a b c")]
    return Conversation(turns[:-1])


def words(llama: Any, **values: Any) -> ModelProfile:
    """The prompt is the words of the texts and nothing else."""
    profile: ModelProfile = llama.profile(**{"prompt_format": "no", "tokenizer": "llama-server"} | values)
    return profile


async def test_what_fits_exactly_is_sent_as_it_is(client: AsyncClient, llama: Any) -> None:
    completion = await client.complete(words(llama, max_context_length=45, max_tokens=20), rounds(3))
    assert llama.bodies[0]["max_tokens"] == 20
    assert completion.metadata == {}


async def test_max_tokens_shrinks_to_the_room_left_and_the_metadata_says_so(
    client: AsyncClient, llama: Any
) -> None:
    completion = await client.complete(words(llama, max_context_length=30, max_tokens=20), rounds(3))
    assert llama.bodies[0]["max_tokens"] == 5
    assert completion.metadata == {"max_tokens": 5}


async def test_a_streams_metadata_says_so_as_well(client: AsyncClient, llama: Any) -> None:
    async with client.stream(words(llama, max_context_length=30, max_tokens=20), rounds(3)) as stream:
        completion = await stream.wait()
    assert completion.metadata == {"max_tokens": 5}


async def test_less_than_a_quarter_of_max_tokens_is_refused_with_the_counts(
    client: AsyncClient, llama: Any
) -> None:
    with pytest.raises(
        ContextOverflowError, match=r"'m'.*25 tokens.*max_tokens 20.*29.*drop-oldest"
    ) as caught:
        await client.complete(words(llama, max_context_length=29, max_tokens=20), rounds(3))
    error = caught.value
    assert (error.input_tokens, error.max_tokens, error.limit) == (25, 20, 29)
    assert not llama.bodies


@pytest.mark.parametrize("max_tokens", [0, None])
async def test_without_a_limit_of_ours_only_the_prompt_has_to_fit(
    client: AsyncClient, llama: Any, max_tokens: int | None
) -> None:
    await client.complete(words(llama, max_context_length=25, max_tokens=max_tokens), rounds(3))
    with pytest.raises(ContextOverflowError):
        await client.complete(words(llama, max_context_length=24, max_tokens=max_tokens), rounds(3))


async def test_the_calls_max_tokens_counts_before_the_profiles(client: AsyncClient, llama: Any) -> None:
    profile = words(llama, max_context_length=30, max_tokens=20)
    await client.complete(profile, rounds(3), max_tokens=5)
    assert llama.bodies[0]["max_tokens"] == 5


async def test_without_a_context_length_nothing_is_counted(client: AsyncClient, llama: Any) -> None:
    await client.complete(words(llama, max_tokens=20), rounds(300))
    assert llama.paths() == ["/v1/completions"]


async def test_what_fits_by_far_is_not_counted(client: AsyncClient, llama: Any) -> None:
    await client.complete(words(llama, max_context_length=4096, max_tokens=500), rounds(3))
    assert llama.paths() == ["/v1/completions"]


@pytest.mark.parametrize("limit", range(35, 60))
async def test_as_few_of_the_oldest_rounds_as_possible_are_dropped(
    client: AsyncClient, llama: Any, limit: int
) -> None:
    profile = words(llama, max_context_length=limit, max_tokens=20, on_overflow="drop-oldest")
    completion = await client.complete(profile, rounds(6))
    kept = (limit - 20 - 5) // ROUND
    assert llama.bodies[0]["prompt"].split()[:2] == ["question", str(5 - kept)]
    assert llama.bodies[0]["max_tokens"] == 20
    assert completion.metadata.get("dropped_turns", 0) == 2 * (5 - kept)


async def test_the_system_turn_stays(client: AsyncClient, llama: Any) -> None:
    profile = words(llama, max_context_length=20, max_tokens=5, on_overflow="drop-oldest")
    await client.complete(profile, rounds(6, system="Be brief."))
    assert llama.bodies[0]["prompt"] == "Be brief.\nquestion 5 a b c"


async def test_when_only_the_last_round_is_left_max_tokens_shrinks(client: AsyncClient, llama: Any) -> None:
    profile = words(llama, max_context_length=12, max_tokens=20, on_overflow="drop-oldest")
    completion = await client.complete(profile, rounds(6))
    assert completion.metadata == {"dropped_turns": 10, "max_tokens": 7}


async def test_a_last_round_that_does_not_fit_is_refused(client: AsyncClient, llama: Any) -> None:
    profile = words(llama, max_context_length=9, max_tokens=20, on_overflow="drop-oldest")
    with pytest.raises(ContextOverflowError) as caught:
        await client.complete(profile, rounds(6))
    assert caught.value.input_tokens == 5


async def test_the_callers_conversation_stays_whole(client: AsyncClient, llama: Any) -> None:
    conversation = rounds(6)
    profile = words(llama, max_context_length=40, max_tokens=20, on_overflow="drop-oldest")
    await client.complete(profile, conversation)
    assert conversation == rounds(6)


@pytest.mark.parametrize("limit", range(70, 400, 11))
async def test_no_tool_result_is_parted_from_its_call(client: AsyncClient, limit: int) -> None:
    turns: list[Turn] = []
    for index in range(5):
        call = ToolCall(f"c{index}", "look", {"at": index}, f'{{"at":{index}}}')
        turns += [
            Turn(Role.USER, f"question {index}"),
            Turn(Role.ASSISTANT, "", tool_calls=(call,)),
            Turn(Role.TOOL, "seen", tool_call_id=call.id, name="look"),
            Turn(Role.ASSISTANT, "answer"),
        ]
    profile = ModelProfile(
        provider="openai-chat", model="gpt-4o", max_context_length=limit, on_overflow="drop-oldest"
    )
    request = CompletionRequest(profile=profile, conversation=Conversation(turns))
    fitted, _ = await fit(client._providers.provider(profile), request, limit)
    kept = fitted.conversation.turns
    assert kept == turns[len(turns) - len(kept) :]
    assert kept[0].role is Role.USER


TEXTS = ["", "Hello", "ééé", "日本語" * 9, "👩‍👩‍👧", "<|im_end|>" * 20, "\ud800", "a\u0300" * 30]


@pytest.mark.parametrize("format", ["", "chatml", "llama3", "gpt-oss", "qwen3"])
async def test_the_quick_bound_is_never_below_the_count(client: AsyncClient, format: str) -> None:
    provider = "openai-text" if format else "openai-chat"
    profile = ModelProfile(provider=provider, model="m", prompt_format=format, url="http://127.0.0.1:9")
    for first, second in itertools.product(TEXTS, TEXTS):
        turns = [Turn(Role.USER, first), Turn(Role.ASSISTANT, second), Turn(Role.USER, first)]
        request = CompletionRequest(
            profile=profile, conversation=Conversation(turns), options=Options(max_tokens=1)
        )
        assert await count_request(client._providers.provider(profile), request) <= at_most(request)
