"""Keeps the calls of a profile within its `limits`."""

from __future__ import annotations

import asyncio
import time
import weakref

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import RateLimitTimeoutError
from lmclient.interceptors.base import CallNext

_Slots = dict[str, asyncio.Semaphore]


class RateLimitInterceptor:
    """Lets at most `limits.concurrency` calls of a profile run at once; the others wait in turn.

    Profiles that name the same `limits.group` share their slots. A slot is given back when the
    answer is over, however it ends. Slots are counted per event loop. Raises
    `RateLimitTimeoutError` if the call's time runs out while it waits.
    """

    def __init__(self) -> None:
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Slots] = (
            weakref.WeakKeyDictionary()
        )

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        limits = request.profile.limits
        if limits.concurrency is None:
            return await call_next(request)
        slots = self._loops.setdefault(asyncio.get_running_loop(), {})
        name = limits.group or request.profile.name
        slot = slots.setdefault(name, asyncio.Semaphore(limits.concurrency))
        await self._acquire(slot, request)
        try:
            stream = await call_next(request)
        except BaseException:
            slot.release()
            raise

        async def release(completion: Completion, error: BaseException | None) -> None:
            slot.release()

        stream.on_end(release)
        return stream

    async def _acquire(self, slot: asyncio.Semaphore, request: CompletionRequest) -> None:
        remaining = None if request.deadline is None else request.deadline - time.monotonic()
        try:
            async with asyncio.timeout(remaining):
                await slot.acquire()
        except TimeoutError:
            raise RateLimitTimeoutError(
                f"Profile {request.profile.name!r}: all {request.profile.limits.concurrency} slots "
                "(limits.concurrency) stayed in use until the call's time ran out."
            ) from None
