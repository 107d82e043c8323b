"""Books every attempt of every call in the ledger. Stands outside all others, to see all attempts."""

from __future__ import annotations

import asyncio

import anyio

from lmclient import errors
from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest, seconds_left
from lmclient.core.stream import AsyncCompletionStream
from lmclient.interceptors.base import CallNext, Forwarding
from lmclient.spend.ledger import Ledger
from lmclient.spend.records import records_of


class SpendInterceptor(Forwarding):
    """One row in the ledger for each attempt, committed before the caller has the end of the answer.

    Failed, cancelled and interrupted attempts are booked with what had arrived, answers of the cache
    with what they saved. Calls that were refused before any attempt leave no row. A ledger that
    cannot be opened fails the call with `ConfigurationError` before anything is sent (or
    `TimeoutError`, if that takes longer than the call has); one that cannot be written later does not:
    see `Ledger.book`.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        if not self._ledger.is_open:
            await self._open(request)
        first = len(request.attempts)
        try:
            stream = await call_next(request)
        except BaseException:  # also when cancelled: what was sent may have to be paid
            with anyio.CancelScope(shield=True):
                await self._ledger.book(records_of(request, first=first))
            raise

        async def end(completion: Completion, error: BaseException | None) -> None:
            await self._ledger.book(records_of(request, completion if error is None else None, first))

        stream.on_end(end)
        return stream

    async def _open(self, request: CompletionRequest) -> None:
        try:
            async with asyncio.timeout(seconds_left(request)):
                await self._ledger.open()
        except TimeoutError as error:
            raise errors.TimeoutError(
                f"Profile {request.profile.name!r}: the call's time ran out while the ledger was opened, "
                "before the request was sent; another process may keep it locked."
            ) from error

    async def aclose(self) -> None:
        """Writes what waits, and closes the ledger."""
        await self._ledger.aclose()
