"""The scripted model, under the real client."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal

import pytest

from lmclient import (
    AsyncClient,
    BadRequestError,
    Chunk,
    Client,
    ConfigurationError,
    Conversation,
    FinishReason,
    LMClientError,
    ServerError,
    StreamInterruptedError,
    TimeoutError,
    Tool,
    ToolCall,
    Usage,
)
from lmclient.providers.registry import provider_names
from lmclient.testing import ScriptedModel


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as opened:
        yield opened


@pytest.fixture
async def client(model, tmp_path) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(model.settings(tmp_path)) as opened:
        yield opened


async def chunks(client, prompt="Hi", **options) -> list[Chunk]:
    async with client.stream("m", prompt, **options) as stream:
        return [chunk async for chunk in stream]


async def test_replies_come_in_order(model, client):
    model.reply("one")
    model.reply("two")
    assert [(await client.complete("m", "?")).text for _ in range(2)] == ["one", "two"]


async def test_every_standard_category_leads_to_the_model(model, client):
    model.reply("yes", times=None)
    for category in ("s", "m", "l", "xl", "hot", "cold"):
        assert (await client.complete(category, "?")).category == category


async def test_the_profile_is_a_target(model, client):
    model.reply("yes")
    assert (await client.complete(model.profile, "?")).profile == "scripted"


async def test_a_category_of_the_tests_own(model, tmp_path):
    model.reply("yes")
    async with AsyncClient(model.settings(tmp_path, categories={"judge": "scripted"})) as client:
        assert (await client.complete("judge", "?")).text == "yes"


async def test_a_rule_looks_at_the_system_prompt(model, client):
    model.reply("translated", when="Translate")
    model.reply("summarized", when="Summarize")
    asked = Conversation.create("text", "Summarize the text.")
    assert (await client.complete("m", asked)).text == "summarized"


async def test_a_rule_looks_at_the_last_user_turn(model, client):
    model.reply("of the first", when="first")
    model.reply("of the second", when="second")
    asked = Conversation.create("first").add("assistant", "…").add("user", "second")
    assert (await client.complete("m", asked)).text == "of the second"


async def test_a_rule_may_be_a_predicate(model, client):
    model.reply("warm", when=lambda request: request.options.temperature == 1.0)
    model.reply("cold")
    assert (await client.complete("m", "?", temperature=0.0)).text == "cold"


async def test_a_reply_may_be_computed(model, client):
    model.reply(lambda request: request.prompt.upper(), times=2)
    assert (await client.complete("m", "echo")).text == "ECHO"


async def test_a_request_without_a_reply_says_what_came(model, client):
    model.reply("one", when="nothing like it")
    with pytest.raises(ConfigurationError, match=r"no reply for request 1 .*'Be brief.*'Hello.*1 of its 1"):
        await client.complete("m", Conversation.create("Hello", "Be brief."))


async def test_a_reply_streams_word_by_word(model, client):
    model.reply("Name  three\nrivers. ", reasoning="Let me think")
    assert await chunks(client) == [
        Chunk(reasoning="Let"),
        Chunk(reasoning=" me"),
        Chunk(reasoning=" think"),
        Chunk("Name"),
        Chunk("  three"),
        Chunk("\nrivers."),
        Chunk(" "),
    ]


async def test_tool_calls_end_a_stream_and_have_their_raw_arguments(model, client):
    model.reply("Wait.", tool_calls=[ToolCall("1", "weather", {"city": "Paris"})])
    expected = ToolCall("1", "weather", {"city": "Paris"}, '{"city":"Paris"}')
    assert (await chunks(client))[-1] == Chunk(tool_calls=(expected,))


async def test_tool_calls_are_the_finish_reason(model, client):
    model.reply(tool_calls=[ToolCall("1", "weather", {})])
    assert (await client.complete("m", "?")).finish_reason is FinishReason.TOOL_CALLS


async def test_the_finish_reason_may_be_given(model, client):
    model.reply("cut", finish_reason=FinishReason.LENGTH)
    assert (await client.complete("m", "?")).finish_reason is FinishReason.LENGTH


async def test_usage_is_a_token_per_word(model, client):
    model.reply("two words", reasoning="so")
    usage = (await client.complete("m", "Three words here")).usage
    assert usage == Usage(input_tokens=3, output_tokens=3, reasoning_tokens=1)


async def test_usage_may_be_given_and_has_its_price(tmp_path):
    with ScriptedModel(cost={"input": "1", "output": "2.5"}) as model:
        model.reply("x", usage=Usage(input_tokens=100, output_tokens=10))
        async with AsyncClient(model.settings(tmp_path)) as client:
            assert (await client.complete("m", "?")).cost == Decimal("0.000125")


async def test_an_exception_is_raised(model, client):
    model.reply(BadRequestError("too odd"))
    with pytest.raises(BadRequestError, match="too odd"):
        await client.complete("m", "?")


async def test_the_clients_retries_are_the_real_ones(model, client):
    model.reply(ServerError("busy", status=503), times=2)
    model.reply("at last")
    assert (await client.complete("m", "?")).requests == 3


async def test_an_error_after_the_text_leaves_the_part_that_came(model, client):
    model.reply("half of", error=StreamInterruptedError("cut"))
    with pytest.raises(StreamInterruptedError) as caught:
        await chunks(client)
    assert caught.value.partial.text == "half of"


async def test_every_request_is_recorded(model, client):
    model.reply("yes", times=2)
    tool = Tool("weather", "…", {"type": "object"})
    await client.complete("s", Conversation.create("Hello", "Be brief."), tools=[tool])
    await chunks(client, tags={"user": "42"})
    first, second = model.requests
    assert (first.system, first.prompt, first.category, first.stream) == ("Be brief.", "Hello", "s", False)
    assert first.options.tools == [tool]
    assert (second.system, second.tags, second.stream) == ("", {"user": "42"}, True)


async def test_a_recorded_conversation_does_not_change_afterwards(model, client):
    model.reply("yes")
    conversation = Conversation.create("Hello")
    conversation.append(await client.complete("m", conversation))
    assert len(model.requests[0].conversation.turns) == 1


async def test_calls_in_a_row_have_separate_ticks(model, client):
    model.reply("yes", times=None)
    await client.complete("m", "?")
    await chunks(client)
    assert [(request.start, request.end) for request in model.requests] == [(1, 2), (3, 4)]
    assert (model.stages(), model.max_in_flight) == (2, 1)


async def test_calls_at_once_are_one_stage(model, client):
    model.reply("yes", times=None)
    await asyncio.gather(*(client.complete("m", "?") for _ in range(5)))
    assert (model.stages(), model.max_in_flight, model.in_flight) == (1, 5, 0)


async def test_stages_count_the_longest_chain(model, client):
    model.reply("yes", times=None)

    async def in_a_row(n):
        for _ in range(n):
            await client.complete("m", "?")

    await asyncio.gather(in_a_row(2), in_a_row(4), in_a_row(1))
    assert model.stages() == 4


async def test_the_shorter_delay_ends_first_whatever_it_takes(model, client):
    model.reply("slow", when="slow", delay=10)
    model.reply("yes", times=None, delay=1)
    ended = []

    async def ask(prompt, times):
        for _ in range(times):
            await client.complete("m", prompt)
        ended.append(prompt)

    await asyncio.gather(ask("slow", 1), ask("fast", 5))
    assert ended == ["fast", "slow"]


async def test_streams_at_once_take_turns(model, client):
    model.reply("a a a", when="first")
    model.reply("b b b", when="second")
    seen = []

    async def read(prompt):
        async with client.stream("m", prompt) as stream:
            async for chunk in stream:
                seen.append(chunk.text.strip())

    await asyncio.gather(read("first"), read("second"))
    assert seen == ["a", "b", "a", "b", "a", "b"]


async def test_a_rendezvous_is_met_by_calls_in_parallel(model, client):
    model.reply("yes", times=None)
    model.rendezvous(3)
    await asyncio.gather(*(client.complete("m", "?") for _ in range(3)))
    assert model.max_in_flight == 3


async def test_a_rendezvous_of_calls_in_a_row_fails_and_says_why(model, client):
    model.reply("yes", times=None)
    model.rendezvous(2, timeout=0.01)
    with pytest.raises(LMClientError, match=r"rendezvous\(2\).*only 1 calls"):
        await client.complete("m", "?")


async def test_a_rendezvous_holds_only_what_fits(model, client):
    model.reply("yes", times=None)
    model.rendezvous(2, when="together")
    await client.complete("m", "alone")
    await asyncio.gather(*(client.complete("m", "together") for _ in range(2)))


async def test_after_a_rendezvous_calls_go_through(model, client):
    model.reply("yes", times=None)
    model.rendezvous(1)
    await client.complete("m", "?")
    await client.complete("m", "?")


async def test_a_call_that_never_ends_can_be_cancelled(model, client):
    model.reply("never", delay=math.inf)
    task = asyncio.create_task(client.complete("m", "?"))
    await model.wait_for_requests(1)
    assert model.in_flight == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.in_flight == 0


async def test_a_call_that_never_ends_has_its_timeout(model, client):
    model.reply("never", delay=math.inf)
    with pytest.raises(TimeoutError, match="in the time of the call"):
        await client.complete("m", "?", timeout=0.01)


async def test_a_stream_that_is_left_ends_its_call(model, client):
    model.reply("one two three")
    async with client.stream("m", "?") as stream:
        await anext(stream)
    assert (stream.completion.text, model.in_flight) == ("one", 0)


def test_clients_without_an_event_loop_share_the_model(model, tmp_path):
    model.reply("yes", times=2)
    with Client(model.settings(tmp_path)) as first, Client(model.settings(tmp_path)) as second:
        assert first.complete("m", "?").text == second.complete("m", "?").text == "yes"
    assert len(model.requests) == 2


async def test_the_cache_may_tell_requests_apart(model, client):
    first, same, other = (client.preview("m", text).body for text in ("a", "a", "b"))
    assert first == same != other


async def test_a_ledger_is_kept_where_it_is_asked_for(model, tmp_path):
    model.reply("yes", times=2)
    async with AsyncClient(model.settings(tmp_path / "without")) as client:
        await client.complete("m", "?")
    async with AsyncClient(model.settings(tmp_path / "with", spend={})) as client:
        await client.complete("m", "?")
    assert {file.parent.parent.name for file in tmp_path.rglob("ledger.sqlite3")} == {"with"}


def test_nothing_is_left_of_a_model_after_its_block():
    before = provider_names()
    with ScriptedModel() as model:
        assert model.profile.provider in provider_names()
    assert provider_names() == before


async def test_the_fixture_is_a_model(scripted_model, tmp_path):
    scripted_model.reply("yes")
    async with AsyncClient(scripted_model.settings(tmp_path)) as client:
        assert (await client.complete("m", "?")).text == "yes"
