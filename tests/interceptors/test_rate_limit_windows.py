"""The limits hold in every minute and for whatever mix of calls: in virtual time, and in the real one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from lmclient.limits.base import Demand
from lmclient.limits.limiter import Limiter
from lmclient.limits.memory import MemoryStore

from .virtual_time import now, run

REQUESTS, TOKENS, SLOTS = 4, 100, 3


@dataclass
class Call:
    """A call that begins `after` the one before, lasts, and uses less than it was thought to."""

    after: float
    lasts: float
    estimate: int
    used: int
    sent: int
    leaves_after: float | None
    arrived: float = 0.0
    admitted: float | None = None
    over: float | None = None


calls = st.lists(
    st.builds(
        Call,
        after=st.floats(0, 40).map(lambda seconds: round(seconds, 2)),
        lasts=st.floats(0, 90).map(lambda seconds: round(seconds, 2)),
        estimate=st.integers(1, TOKENS),
        used=st.integers(0, 1),
        sent=st.integers(0, 1),
        leaves_after=st.none() | st.floats(0, 100),
    ),
    min_size=1,
    max_size=25,
)


@dataclass
class Log:
    calls: list[Call]
    running: int = 0
    most: int = 0
    order: list[Call] = field(default_factory=list)


async def play(log: Log) -> None:
    limiter = Limiter(lambda freed: MemoryStore(now, freed), now)

    async def one(call: Call) -> None:
        call.arrived = now()
        demand = Demand(
            scope="s",
            tokens=call.estimate,
            requests_per_minute=REQUESTS,
            tokens_per_minute=TOKENS,
            concurrency=SLOTS,
        )
        lease = await limiter.admit(demand, None)
        call.admitted = now()
        log.order.append(call)
        log.running += 1
        log.most = max(log.most, log.running)
        try:
            await asyncio.sleep(call.lasts)
        finally:
            log.running -= 1
            call.over = now()
            await lease.settle(call.sent, call.used * call.estimate)

    async with asyncio.TaskGroup() as group:
        for call in log.calls:
            await asyncio.sleep(call.after)
            task = group.create_task(one(call))
            if call.leaves_after is not None:
                asyncio.get_running_loop().call_later(call.leaves_after, task.cancel)


def counted(log: Log, at: Call) -> list[Call]:
    """The calls that count in the minute that ends with the admission of one, itself included."""
    assert at.admitted is not None
    until = log.order[: log.order.index(at) + 1]
    return [call for call in until if call.admitted is not None and call.admitted > at.admitted - 60]


@settings(max_examples=150, deadline=None)
@given(calls)
def test_no_minute_and_no_moment_exceeds_a_limit_and_nobody_overtakes(made: list[Call]) -> None:
    log = Log(made)
    run(play(log))
    assert log.most <= SLOTS
    for at in log.order:
        minute = counted(log, at)
        over = [call.over is not None and call.over <= (at.admitted or 0) for call in minute]
        requests = sum(call.sent or not done for call, done in zip(minute, over, strict=True))
        tokens = sum(
            call.used * call.estimate if done else call.estimate
            for call, done in zip(minute, over, strict=True)
        )
        assert requests <= REQUESTS
        assert tokens <= TOKENS
    assert [call.arrived for call in log.order] == sorted(call.arrived for call in log.order)
    assert all(call.admitted is not None for call in made if call.leaves_after is None)


def test_admissions_under_load_stay_within_the_limit_in_real_time() -> None:
    span, limit = 0.1, 20
    admitted: list[float] = []

    async def main() -> None:
        limiter = Limiter(lambda freed: MemoryStore(time.monotonic, freed, span=span), time.monotonic)
        demand = Demand(scope="s", requests_per_minute=limit, concurrency=5)

        async def one() -> None:
            lease = await limiter.admit(demand, None)
            admitted.append(time.monotonic())
            await asyncio.sleep(0)
            await lease.settle(1, 0)

        await asyncio.gather(*(one() for _ in range(120)))

    asyncio.run(main())
    assert len(admitted) == 120
    # The clock is read a little after the admission, hence the hair's breadth.
    spans = [later - earlier for earlier, later in zip(admitted, admitted[limit:], strict=False)]
    assert min(spans) > span - 0.02
    assert admitted[-1] - admitted[0] < 5 * span + 0.5
