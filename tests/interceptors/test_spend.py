"""What the default chain books: every attempt of every call, however it ended."""

from __future__ import annotations

import asyncio
import datetime
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    AsyncCompletionStream,
    BudgetInterceptor,
    CallNext,
    Client,
    Completion,
    CompletionRequest,
    ConfigurationError,
    Conversation,
    FinishReason,
    Ledger,
    LMClientError,
    ModelProfile,
    Settings,
    SpendInterceptor,
    SpendRecord,
    Usage,
)
from lmclient.interceptors.base import chain
from lmclient.settings import Budget, RetrySettings
from lmclient.spend.client import AsyncSpend
from lmclient.testing import FaultProvider

from .calls import answer, profile, request

KEY = "sk-planted-0123456789"
PRICES = {"input": "2", "cached_input": "0.2", "output": "8"}


@pytest.fixture(scope="module")
def faults() -> Iterator[FaultProvider]:
    with FaultProvider.running() as provider:
        yield provider


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data", profiles_dir=tmp_path / "none", retry=RetrySettings(max_wait=0.01)
    )


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(settings) as opened:
        yield opened


@pytest.fixture
def fault(faults: FaultProvider) -> Callable[[str], ModelProfile]:
    def made(scenario: str) -> ModelProfile:
        url = faults.url(scenario, key=str(datetime.datetime.now().timestamp()))
        return ModelProfile(
            name="mini", provider="openai-chat", model="mock", url=url, api_key=KEY, cost=PRICES
        )

    return made


async def test_call_is_booked_with_all_that_is_known(
    client: AsyncClient, fault: Callable[[str], ModelProfile]
) -> None:
    conversation = Conversation.create("What I ask")
    conversation.metadata["id"] = 7
    reply = await client.complete(fault("ok"), conversation, tags={"user": "42"})
    (row,) = await client.spend.records()
    assert (row.profile, row.provider, row.model) == ("mini", "openai-chat", reply.model)
    assert (row.input_tokens, row.output_tokens) == (reply.usage.input_tokens, reply.usage.output_tokens)
    assert (row.cost, row.currency, row.cost_source) == (reply.cost, "USD", "profile")
    assert (row.status, row.finish_reason, row.error, row.final) == ("finished", "stop", None, True)
    assert (row.tags, row.conversation_id, row.requests) == ({"user": "42"}, "7", 1)
    assert row.duration > 0
    assert await client.spend.total() == {"USD": reply.cost}


async def test_neither_text_nor_key_is_in_the_file(
    client: AsyncClient, settings: Settings, fault: Callable[[str], ModelProfile]
) -> None:
    reply = await client.complete(fault("ok"), "The words that I ask")
    await client.aclose()
    data = b"".join(file.read_bytes() for file in settings.data_dir.iterdir())
    assert b"mini" in data
    assert [secret in data for secret in (KEY.encode(), b"The words that", reply.text.encode())] == [
        False
    ] * 3


async def test_retries_are_rows_of_one_call_with_status_wait_and_duration(
    client: AsyncClient, fault: Callable[[str], ModelProfile]
) -> None:
    await client.complete(fault("overloaded_twice"), "hi")
    *failed, last = reversed(await client.spend.records())
    assert {row.call_id for row in failed} == {last.call_id}
    assert [(row.status, row.error, row.http_status) for row in (*failed, last)] == [
        ("failed", "ServerError", 529),
        ("failed", "ServerError", 503),
        ("finished", None, None),
    ]
    assert [row.attempt for row in (*failed, last)] == [1, 2, 3]
    assert [row.final for row in (*failed, last)] == [False, False, True]
    assert last.waited > 0
    assert all(row.duration > 0 for row in failed)


class Reading:
    """Reads the whole answer before it hands it on."""

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        stream = await call_next(request)
        await stream.wait()
        return stream


@pytest.mark.parametrize("streams", [False, True])
async def test_answer_that_another_interceptor_has_read_is_booked_and_counted(
    tmp_path: Path, fault: Callable[[str], ModelProfile], streams: bool
) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}")
    budget = BudgetInterceptor([Budget(name="b", amount=Decimal(1))], ledger)
    asked = fault("ok").model_copy(update={"max_tokens": 100})
    settings = Settings(data_dir=tmp_path, profiles_dir=tmp_path)
    async with AsyncClient(settings, interceptors=[SpendInterceptor(ledger), budget, Reading()]) as client:
        reply = await (client.stream(asked, "hi").wait() if streams else client.complete(asked, "hi"))
        assert await client.spend.total() == {"USD": reply.cost}
        spent = await ledger.run(lambda database: database.execute("SELECT spent FROM lmclient_budget"))
    assert (str(reply.cost),) in spent


async def test_stream_that_is_left_is_booked_as_cancelled_and_estimated(
    client: AsyncClient, fault: Callable[[str], ModelProfile]
) -> None:
    async with client.stream(fault("many_chunks"), "hi") as stream:
        for _ in range(5):
            await anext(stream)
    (row,) = await client.spend.records()
    assert (row.status, row.error, row.estimated) == ("cancelled", "CancelledError", True)
    assert row.input_tokens > 0
    assert row.output_tokens > 0
    assert row.cost == (row.input_tokens * 2 + row.output_tokens * 8) / Decimal(1_000_000)


def test_stream_that_is_open_when_its_client_closes_is_booked(
    settings: Settings, fault: Callable[[str], ModelProfile]
) -> None:
    with Client(settings) as client:
        stream = client.stream(fault("hang_mid_stream"), "Hello")
        next(stream)
    assert stream.completion.text
    with Client(settings) as client:
        (row,) = client.spend.records()
    assert (row.status, row.estimated) == ("cancelled", True)


async def test_a_reader_does_not_outlive_its_client(
    settings: Settings, fault: Callable[[str], ModelProfile]
) -> None:
    async with AsyncClient(settings) as client:
        stream = client.stream(fault("hang_mid_stream"), "Hello")
        await anext(stream)
        reading = asyncio.create_task(stream.wait())
        await asyncio.sleep(0)
    await asyncio.wait({reading}, timeout=2)
    assert reading.done()
    assert isinstance(reading.exception(), LMClientError)


async def test_cancelled_call_is_booked(client: AsyncClient, fault: Callable[[str], ModelProfile]) -> None:
    async def read_on() -> None:
        async with client.stream(fault("hang_mid_stream"), "hi") as stream:
            async for _ in stream:
                reading.set()

    reading = asyncio.Event()
    task = asyncio.create_task(read_on())
    await reading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (row,) = await client.spend.records()
    assert (row.status, row.estimated) == ("cancelled", True)


async def test_interrupted_answer_is_booked(
    client: AsyncClient, fault: Callable[[str], ModelProfile]
) -> None:
    with pytest.raises(LMClientError):
        async with client.stream(fault("truncated_stream"), "hi") as stream:
            await stream.wait()
    (row,) = await client.spend.records()
    assert (row.status, row.error, row.estimated) == ("interrupted", "StreamInterruptedError", True)


async def test_two_rounds_of_which_one_reports_usage(
    client: AsyncClient, fault: Callable[[str], ModelProfile]
) -> None:
    await client.complete(fault("ok"), "hi")
    await client.complete(fault("usage_none"), "hi")
    second, first = await client.spend.records()
    assert (first.estimated, second.estimated) == (False, True)


async def test_sync_client_books_and_reports(
    settings: Settings, fault: Callable[[str], ModelProfile]
) -> None:
    with Client(settings) as client:
        reply = client.complete(fault("ok"), "hi", tags={"user": "42"})
        assert [row.cost for row in client.spend.records()] == [reply.cost]
        assert [row.tags for row in client.spend.report(["tag:user"])] == [{"user": "42"}]
        assert client.spend.total(where={"profile": "mini"}) == {"USD": reply.cost}


async def test_ledger_that_is_off_is_not_made(tmp_path: Path, fault: Callable[[str], ModelProfile]) -> None:
    settings = Settings(data_dir=tmp_path / "data", spend={"enabled": False})
    async with AsyncClient(settings) as client:
        await client.complete(fault("ok"), "hi")
    assert not (tmp_path / "data").exists()


async def test_ledger_that_cannot_be_opened_fails_the_call_before_it_is_sent(
    tmp_path: Path, faults: FaultProvider, fault: Callable[[str], ModelProfile]
) -> None:
    (tmp_path / "data").write_text("a file where a folder should be")
    async with AsyncClient(Settings(data_dir=tmp_path / "data")) as client:
        served = sum(counters.get("requests", 0) for counters in faults.stats().values())
        with pytest.raises(ConfigurationError, match=r"ledger\.sqlite3 cannot be opened"):
            await client.complete(fault("ok"), "hi")
    assert sum(counters.get("requests", 0) for counters in faults.stats().values()) == served


async def test_a_call_waits_for_a_locked_ledger_no_longer_than_its_time(
    settings: Settings,
    faults: FaultProvider,
    fault: Callable[[str], ModelProfile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lmclient.spend.sqlite.BUSY_TIMEOUT", 0.5)
    assert settings.spend.url is not None
    file = Path(settings.spend.url.removeprefix("sqlite:///"))
    file.parent.mkdir(parents=True, exist_ok=True)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    async with AsyncClient(settings) as client:
        served = sum(counters.get("requests", 0) for counters in faults.stats().values())
        with pytest.raises(TimeoutError, match="before the request was sent"):
            await client.complete(fault("ok"), "hi", timeout=0.05)
        other.execute("ROLLBACK")
        other.close()
        assert sum(counters.get("requests", 0) for counters in faults.stats().values()) == served
        await client.complete(fault("ok"), "hi")


async def test_answer_is_given_although_the_ledger_cannot_be_written(
    client: AsyncClient,
    settings: Settings,
    fault: Callable[[str], ModelProfile],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("lmclient.spend.sqlite.BUSY_TIMEOUT", 0.01)
    await client.complete(fault("ok"), "hi")
    blocker = sqlite3.connect(settings.data_dir / "ledger.sqlite3", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.ERROR, "lmclient.spend"):
        reply = await client.complete(fault("ok"), "hi")
    blocker.execute("ROLLBACK")
    blocker.close()
    assert reply.text
    assert "kept in memory and tried again: 1" in caplog.text
    await client.complete(fault("ok"), "hi")
    assert len(await client.spend.records()) == 3


# Alone, with the rest of the chain made up.


async def booked(
    tmp_path: Path, respond: Callable[[CompletionRequest], Completion | BaseException], **values: Any
) -> list[SpendRecord]:
    """The records, oldest first, of one call to which the rest of the chain responds."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}")

    async def call_next(asked: CompletionRequest) -> AsyncCompletionStream:
        response = respond(asked)
        if isinstance(response, BaseException):
            raise response
        return AsyncCompletionStream.of(response)

    call = chain([SpendInterceptor(ledger)], call_next)
    try:
        stream = await call(request(profile("mini", cost=PRICES), **values))
        await stream.wait()
    except LMClientError:
        pass
    records = await AsyncSpend(ledger).records()
    await ledger.aclose()
    return records[::-1]


async def test_cached_answer_costs_nothing_and_saves_its_cost(tmp_path: Path) -> None:
    hit = Completion(
        profile="mini",
        model="mock",
        cached=True,
        cost=Decimal(0),
        cost_source="cache",
        usage=Usage(input_tokens=25, output_tokens=200),
        finish_reason=FinishReason.STOP,
        metadata={"saved_cost": Decimal("0.00165")},
    )
    (row,) = await booked(tmp_path, lambda asked: hit)
    assert (row.cached, row.cost, row.saved_cost, row.requests) == (True, 0, Decimal("0.00165"), 0)
    assert (row.input_tokens, row.output_tokens, row.finish_reason) == (25, 200, "stop")


async def test_every_attempt_of_a_fallback_is_booked_under_its_own_profile(tmp_path: Path) -> None:
    def respond(asked: CompletionRequest) -> Completion:
        answer(asked, error=LMClientError("down"))
        attempt = answer(asked, cost=Decimal("0.5"), model="mock")
        attempt.profile = profile("large")
        assert attempt.completion is not None
        return attempt.completion

    rows = await booked(tmp_path, respond)
    assert [(row.profile, row.status, row.cost) for row in rows] == [
        ("mini", "failed", None),
        ("large", "finished", Decimal("0.5")),
    ]


async def test_call_that_was_refused_before_any_attempt_leaves_no_row(tmp_path: Path) -> None:
    assert await booked(tmp_path, lambda asked: LMClientError("refused")) == []


async def test_attempts_of_a_failed_call_are_booked(tmp_path: Path) -> None:
    def respond(asked: CompletionRequest) -> BaseException:
        error = LMClientError("down")
        answer(asked, error=error)
        answer(asked, error=error)
        return error

    rows = await booked(tmp_path, respond)
    assert [(row.attempt, row.final, row.error) for row in rows] == [
        (1, False, "LMClientError"),
        (2, True, "LMClientError"),
    ]


async def test_contradicting_usage_is_marked(tmp_path: Path) -> None:
    def respond(asked: CompletionRequest) -> Completion:
        attempt = answer(asked, metadata={"usage_inconsistent": True})
        assert attempt.completion is not None
        return attempt.completion

    (row,) = await booked(tmp_path, respond)
    assert row.inconsistent
