"""BudgetInterceptor with a ledger in SQLite, alone and in the default chain."""

from __future__ import annotations

import asyncio
import logging
import math
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    AsyncCompletionStream,
    BudgetExceededError,
    BudgetInterceptor,
    Client,
    Completion,
    CompletionRequest,
    Conversation,
    FallbackInterceptor,
    Ledger,
    LMClientError,
    ModelProfile,
    ServerError,
    Settings,
    Usage,
)
from lmclient.interceptors.base import chain
from lmclient.settings import Budget
from lmclient.testing import FaultProvider, MockProvider

from .calls import Next, answering, profile, request

WORKER = Path(__file__).with_name("budget_worker.py")
SHEET = {
    "input": "2.00",
    "output": "8.00",
    "tiers": [{"above_input_tokens": 200_000, "input": "4.00", "output": "12.00"}],
}
PRICED = profile("priced", cost={"input": "0", "output": "1000"})
"""With max_tokens 100 a call may cost 0.1."""
FREE = profile("free", cost={"input": "0", "output": "0"})
IN_EUROS = profile("in-euros", cost={"input": "0", "output": "1000", "currency": "EUR"})
TENTH = Decimal("0.1")

Make = Callable[..., BudgetInterceptor]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite3'}"


@pytest.fixture
async def make(url: str) -> AsyncIterator[Make]:
    """`make(amount="1", …)`: an interceptor with one budget like that."""
    ledger = Ledger(url)

    def interceptor(*, on_warning: Any = None, **budget: Any) -> BudgetInterceptor:
        return BudgetInterceptor([Budget(**{"name": "b", **budget})], ledger, on_warning=on_warning)

    yield interceptor
    await ledger.aclose()


async def call(
    interceptor: BudgetInterceptor, asked: CompletionRequest | None = None, call_next: Next | None = None
) -> Completion:
    asked = asked or request(PRICED, max_tokens=100)
    return await (await interceptor(asked, call_next or answering(cost=TENTH)[0])).wait()


async def served(
    interceptor: BudgetInterceptor,
    calls: int,
    *,
    asked: ModelProfile = PRICED,
    call_next: Next | None = None,
    **values: Any,
) -> int:
    """How many of so many calls at once are not refused."""
    results = await asyncio.gather(
        *(call(interceptor, request(asked, max_tokens=100, **values), call_next) for _ in range(calls)),
        return_exceptions=True,
    )
    others = [error for error in results if isinstance(error, BaseException)]
    assert all(isinstance(error, BudgetExceededError) for error in others)
    return calls - len(others)


async def test_a_budget_is_used_up_exactly(make: Make) -> None:
    interceptor = make(amount="1")
    for _ in range(10):
        await call(interceptor)
    with pytest.raises(BudgetExceededError, match=r"'priced'.*'b'.*1 USD.*up to 0\.1: 1 are spent"):
        await call(interceptor)


@pytest.mark.parametrize("deadline", [math.inf, 1e17, 1e308])
async def test_a_call_may_take_for_ever(make: Make, deadline: float) -> None:
    answered = await call(make(amount="1"), request(PRICED, max_tokens=100, deadline=deadline))
    assert answered.cost == TENTH


async def test_calls_at_once_do_not_overdraw_it(make: Make) -> None:
    assert await served(make(amount="0.35"), 20) == 3


async def test_what_a_call_did_not_use_is_given_back(make: Make) -> None:
    interceptor = make(amount="0.15")
    for _ in range(5):
        await call(interceptor, call_next=answering(cost=Decimal("0.01"))[0])
    with pytest.raises(BudgetExceededError, match=r"0\.05 are spent and 0 reserved"):
        await call(interceptor, request(PRICED, max_tokens=101))


async def test_eight_first_calls_of_a_new_user_do_not_escape(make: Make) -> None:
    interceptor = make(amount="0.09", tags={"user": "*"})
    assert await served(interceptor, 8, tags={"user": "new"}) == 0


async def test_the_tier_of_a_long_prompt_counts(make: Make) -> None:
    interceptor = make(amount="4.9")
    asked = request(profile(cost=SHEET), max_tokens=1)
    asked.conversation = Conversation.create("word " * 250_000)
    call_next, seen = answering(Usage(input_tokens=250_000))
    with pytest.raises(BudgetExceededError, match=r"up to 5\.00"):
        await call(interceptor, asked, call_next)
    assert not seen


async def test_the_context_bounds_an_answer_without_max_tokens(make: Make) -> None:
    asked = request(profile(cost={"input": "0", "output": "1000"}, max_context_length=1000))
    await call(make(amount="1.5"), asked)
    with pytest.raises(BudgetExceededError, match=r"up to 0\.99"):
        await call(make(amount="0.5"), asked)


async def test_each_value_of_a_tag_has_its_own(make: Make) -> None:
    interceptor = make(amount="0.1", tags={"user": "*"})
    for user in ("1", "2"):
        assert await served(interceptor, 2, tags={"user": user}) == 1


async def test_calls_that_do_not_match_pass(make: Make) -> None:
    assert await served(make(amount="0", tags={"user": "7"}), 2, tags={"user": "8"}) == 2
    assert await served(make(amount="0", profile="other"), 2) == 2
    assert await served(make(amount="0", currency="EUR"), 2) == 2
    assert await served(make(amount="0", tags={"user": "*"}), 2, tags={"task": "7"}) == 2


async def test_a_profile_has_its_own(make: Make) -> None:
    assert await served(make(amount="0.1", profile="priced"), 2) == 1


async def test_a_failed_call_frees_what_it_held(make: Make) -> None:
    interceptor = make(amount="0.1")
    with pytest.raises(ServerError):
        await call(interceptor, call_next=answering(ServerError("down"))[0])
    await call(interceptor)


async def test_a_call_cancelled_before_its_answer_frees_what_it_held(make: Make) -> None:
    interceptor, sent = make(amount="0.1"), asyncio.Event()

    async def never(asked: CompletionRequest) -> AsyncCompletionStream:
        sent.set()
        return await asyncio.Future()

    waiting = asyncio.create_task(call(interceptor, call_next=never))
    await sent.wait()
    assert await served(interceptor, 1) == 0
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await call(interceptor)


async def test_a_cancelled_call_counts_what_had_arrived(make: Make) -> None:
    interceptor = make(amount="0.2")
    async with await interceptor(request(PRICED, max_tokens=100), answering(cost=TENTH)[0]) as stream:
        await stream.next_batch()
    await call(interceptor)
    with pytest.raises(BudgetExceededError, match=r"0\.2 are spent and 0 reserved"):
        await call(interceptor)


async def test_a_call_cancelled_while_it_reserves_holds_nothing(make: Make) -> None:
    interceptor = make(amount="0.1")
    reserving = asyncio.create_task(call(interceptor))
    await asyncio.sleep(0)
    reserving.cancel()
    await asyncio.gather(reserving, return_exceptions=True)
    await call(interceptor)


async def test_a_running_call_holds_its_worst_case(make: Make) -> None:
    interceptor = make(amount="0.1")
    stream = await interceptor(request(PRICED, max_tokens=100), answering(cost=TENTH)[0])
    with pytest.raises(BudgetExceededError, match=r"0 are spent and 0\.1 reserved"):
        await call(interceptor)
    await stream.aclose()


async def test_free_profiles_pass_a_spent_budget(make: Make) -> None:
    await call(make(amount="0"), request(FREE), answering()[0])


@pytest.mark.parametrize("asked", [FREE, IN_EUROS], ids=lambda asked: asked.name)
async def test_what_the_provider_says_it_cost_counts_whatever_the_prices_are(
    make: Make, asked: ModelProfile
) -> None:
    interceptor = make(amount="0.2")
    for _ in range(2):
        await call(interceptor, request(asked, max_tokens=100))
    with pytest.raises(BudgetExceededError, match=r"up to 0\.1: 0\.2 are spent"):
        await call(interceptor, request(asked, max_tokens=100))
    with pytest.raises(BudgetExceededError, match=r"0\.2 are spent"):
        await call(interceptor)


async def test_a_later_process_knows_that_a_profile_is_not_free(url: str) -> None:
    for outcomes in (["served"], ["refused", "refused"]):
        ledger = Ledger(url)
        interceptor = BudgetInterceptor([Budget(name="b", amount=TENTH)], ledger)
        for outcome in outcomes:
            assert await served(interceptor, 1, asked=FREE) == (outcome == "served")
        await interceptor.aclose()


async def test_a_profile_with_other_prices_is_another_one(make: Make) -> None:
    interceptor = make(amount="0.15")
    await call(interceptor, request(profile("p", cost=FREE.cost)))
    assert await served(interceptor, 1, asked=profile("p", cost={"input": "0", "output": "500"})) == 1
    assert await served(interceptor, 1, asked=profile("p", cost=FREE.cost)) == 0


async def test_what_calls_cost_beyond_their_worst_case_is_reserved_by_later_ones(make: Make) -> None:
    interceptor, call_next = make(amount="1"), answering(cost=Decimal("0.3"))[0]
    await call(interceptor, call_next=call_next)
    # 0.1 is the worst case, and 0.7 are left.
    assert await served(interceptor, 20, call_next=call_next) == 2


async def test_one_dear_answer_keeps_nobody_out_of_a_budget_of_their_own(make: Make) -> None:
    interceptor = make(amount="0.5", tags={"user": "*"})
    asked = request(PRICED, max_tokens=100, tags={"user": "1"})
    await call(interceptor, asked, answering(cost=Decimal(7))[0])
    for _ in range(5):
        assert await served(interceptor, 2, tags={"user": "2"}) == 1
    with pytest.raises(BudgetExceededError, match=r"'2'.* 0\.5 are spent"):
        await call(interceptor, request(PRICED, max_tokens=100, tags={"user": "2"}))


async def test_all_answers_that_an_extra_body_asks_for_are_reserved(make: Make) -> None:
    asked = request(PRICED, extra_body={"n": 4, "max_tokens": 100})
    with pytest.raises(BudgetExceededError, match=r"up to 0\.4:"):
        await call(make(amount="0.3"), asked)


async def test_a_profile_without_a_price_passes_with_a_warning_until_the_budget_is_used_up(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    interceptor = make(amount="0.2", warn_at=1)
    asked = profile("unpriced")
    with caplog.at_level(logging.WARNING, "lmclient.budget"):
        for _ in range(2):
            await call(interceptor, request(asked))
        with pytest.raises(BudgetExceededError, match="not known"):
            await call(interceptor, request(asked))
    assert [record.message for record in caplog.records if "no known price" in record.message] == [
        "Profile 'unpriced' has no known price: its calls reserve nothing of their budgets. "
        "Set cost.input and cost.output, 0 if it is free."
    ]


async def test_the_warning_comes_once_and_says_whose_budget_it_is(make: Make) -> None:
    heard: list[tuple[dict[str, str], Decimal]] = []

    def on_warning(budget: Budget, spent: Decimal) -> None:
        heard.append((budget.tags, spent))

    interceptor = make(amount="1", tags={"user": "*"}, warn_at=0.5, on_warning=on_warning)
    for _ in range(8):
        await call(interceptor, request(PRICED, max_tokens=100, tags={"user": "42"}))
    assert heard == [({"user": "42"}, Decimal("0.5"))]


async def test_a_warning_that_fails_does_not_fail_the_call(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    def on_warning(budget: Budget, spent: Decimal) -> None:
        raise RuntimeError("no mail server")

    assert (await call(make(amount="0.1", on_warning=on_warning))).text == "hello"
    assert [record.getMessage() for record in caplog.records] == ["The warning of the budget 'b' failed."]


async def test_by_default_the_warning_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "lmclient.budget"):
        await call(make(amount="0.1"))
    assert [record.getMessage() for record in caplog.records] == [
        "The budget 'b' (month) has spent 0.1 of 0.1 USD."
    ]


async def test_the_profile_that_really_answers_is_the_one_that_is_checked(make: Make) -> None:
    interceptor = make(amount="0")
    call_next, seen = answering(ServerError("down", status=503), None)
    links = chain([FallbackInterceptor(), interceptor], call_next)
    with pytest.raises(BudgetExceededError, match="'priced'"):
        await links(request(FREE, fallbacks=(PRICED,)))
    assert [asked.profile.name for asked in seen] == ["free"]


async def test_a_free_profile_answers_in_place_of_one_without_budget(make: Make) -> None:
    call_next, _ = answering()
    links = chain([FallbackInterceptor(), make(amount="0")], call_next)
    assert (await (await links(request(PRICED, fallbacks=(FREE,)))).wait()).profile == "free"


async def test_after_a_fallback_the_budget_of_the_other_profile_counts(url: str) -> None:
    other = profile("other", cost=PRICED.cost)
    budgets = [Budget(name=name, amount=TENTH, profile=name) for name in ("priced", "other")]
    interceptor = BudgetInterceptor(budgets, Ledger(url))
    links = chain([FallbackInterceptor(), interceptor], answering(cost=TENTH)[0])

    async def answered_by() -> str:
        stream = await links(request(PRICED, max_tokens=100, fallbacks=(other,)))
        return (await stream.wait()).profile

    assert [await answered_by() for _ in range(2)] == ["priced", "other"]
    with pytest.raises(BudgetExceededError, match="'other'"):
        await answered_by()
    await interceptor.aclose()


async def test_a_ledger_that_cannot_be_written_fails_the_call_before_it_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(f"sqlite:///{tmp_path / 'file' / 'ledger.sqlite3'}")
    interceptor = BudgetInterceptor([Budget(name="b", amount=Decimal(1))], ledger)
    call_next, seen = answering()
    with pytest.raises(LMClientError, match="ledger"):
        await call(interceptor, call_next=call_next)
    assert not seen
    await ledger.aclose()


def test_processes_share_a_budget(url: str) -> None:
    command = [sys.executable, str(WORKER), url, "64"]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    lines = [line for worker in workers for line in worker.communicate(timeout=60)[0].split()]
    assert len(lines) == 128
    assert lines.count("served") == 10


def _reserve_and_die(url: str) -> None:
    command = [sys.executable, str(WORKER), url, "10", "--hang"]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    for _ in range(10):
        assert worker.stdout.readline() == "reserved\n"
    worker.kill()
    worker.communicate()


async def test_what_a_killed_process_held_lapses_after_its_deadline(
    url: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(_reserve_and_die, url)
    interceptor = make(amount="1", period="total")
    assert await served(interceptor, 1) == 0
    later = time.time() + 60 + 61  # the deadline, and the time after it in which the process may finish
    monkeypatch.setattr("lmclient.spend.budgets.time.time", lambda: later)
    assert await served(interceptor, 10) == 10


def priced(url: str, **values: Any) -> ModelProfile:
    return ModelProfile(
        **{"provider": "openai-chat", "model": "mock", "url": url, "api_key": "sk-1", "max_tokens": 1000,
           "cost": {"input": "2", "output": "8"}, **values}
    )  # fmt: skip


def chained(tmp_path: Path, amount: str) -> Settings:
    return Settings(data_dir=tmp_path, spend={"budgets": [{"name": "all", "amount": amount}]})


async def test_the_default_chain_keeps_the_budgets_of_the_settings(
    mock_provider: MockProvider, tmp_path: Path
) -> None:
    # 25 input and 200 output tokens cost 0.00165, and a call may take a little over 0.008.
    async with AsyncClient(chained(tmp_path, "0.0115")) as client:
        for _ in range(3):
            await client.complete(priced(mock_provider.url()), "hi")
        with pytest.raises(BudgetExceededError, match=r"0\.00495 are spent"):
            await client.complete(priced(mock_provider.url()), "hi")


def test_a_later_client_knows_what_was_spent_without_any_budget(
    mock_provider: MockProvider, tmp_path: Path
) -> None:
    with Client(Settings(data_dir=tmp_path)) as client:
        client.complete(priced(mock_provider.url()), "hi")
    with (
        Client(chained(tmp_path, "0.009")) as client,
        pytest.raises(BudgetExceededError, match=r"0\.00165 are"),
    ):
        client.complete(priced(mock_provider.url()), "hi")


async def _again_and_again(work: Callable[[], Awaitable[None]]) -> None:
    for _ in range(10):
        await work()


async def test_a_stream_left_early_is_counted_with_its_estimate(
    fault_provider: FaultProvider, tmp_path: Path
) -> None:
    asked = priced(
        fault_provider.url("slow_stream", key="budget"),
        cost={"input": "1000", "output": "1000"},
        max_tokens=50,
    )
    async with AsyncClient(chained(tmp_path, "0.15")) as client:

        async def leave_early() -> None:
            async with client.stream(asked, "hi") as stream:
                await stream.next_batch()
            assert stream.completion.usage.estimated

        with pytest.raises(BudgetExceededError, match=r": 0\.[0-9]*[1-9] are spent and 0 reserved"):
            await _again_and_again(leave_early)
