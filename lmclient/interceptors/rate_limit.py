"""Keeps the calls of a profile within its `limits`, and within what its provider says is left."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextvars import ContextVar

from lmclient.core.completion import Completion
from lmclient.core.request import Attempt, CompletionRequest, own_attempts
from lmclient.core.stream import AsyncCompletionStream
from lmclient.core.usage import Usage
from lmclient.errors import ConnectError, ProviderError, RateLimitTimeoutError
from lmclient.interceptors.base import CallNext, Forwarding
from lmclient.interceptors.stated import stated_limits
from lmclient.limits.base import Demand, Lease
from lmclient.limits.limiter import Limiter
from lmclient.limits.provider import LONGEST
from lmclient.limits.storage import store_at
from lmclient.profiles.model import Limits, ModelProfile
from lmclient.tokens.estimate import estimate_tokens

ASSUMED_OUTPUT = 1024
"""Tokens that an answer is assumed to take where neither the call nor the profile limits it."""


class RateLimitInterceptor(Forwarding):
    """Admits calls as the `limits` of their profiles allow; the others wait in the order they came.

    Requests and tokens are counted over each stretch of 60 seconds, not per clock minute. A call
    takes all that it needs together: a slot, a request, and its tokens as estimated (the prompt, and
    `max_tokens` or 1024). When it is over, however that is, the slot is free and the tokens are
    corrected to those really used, none if it failed. Its request counts unless none was sent,
    since providers count failed ones, too.

    Profiles with the same `limits.group` share what they take; each keeps its own limits there.
    `storage_url` is `memory://`, where the event loops and threads that use this interceptor share the
    limits, or `redis://…`, where all machines do. Each call of `retries`, the link to put inside of the
    retries, admits another request of the same call.

    A profile also waits when its provider says that nothing is left of its limits (`x-ratelimit-…`),
    or asks to wait, for a minute at most. For `max_wait` seconds, that is: where it would be longer,
    calls fail at once, as those do whose retries would have to wait.

    Raises `RateLimitTimeoutError` for a call that can never fit, or not before its deadline, or not
    before the provider has been waited for too long, and with `wait=False` for every call that would
    have to wait. `clock` gives the seconds in which deadlines are stated.
    """

    def __init__(
        self,
        storage_url: str = "memory://",
        *,
        wait: bool = True,
        max_wait: float = LONGEST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limiter = Limiter(store_at(storage_url, clock), clock, max_wait=max_wait)
        self._wait = wait

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        profile = request.profile
        known = len(request.attempts)
        if _is_unlimited(profile.limits) and not self._limiter.holds_back(lambda: _scope(profile)):
            try:
                return await call_next(request)
            finally:
                self._learn(request, known)
        request = own_attempts(request)
        admission = _Admission(self, request, _scope(profile))
        await admission.enter(slots=1)
        token = _current.set(admission)
        try:
            stream = await call_next(request)
        except BaseException as error:
            await admission.end(None, error)
            raise
        finally:
            with contextlib.suppress(ValueError):  # another context: the call is being thrown away
                _current.reset(token)
            self._learn(request, known)
        if stream.is_whole:  # nobody need have read it for its slot to be free
            await admission.end(stream.result(), None)
        else:
            stream.on_end(admission.end)
        return stream

    async def retries(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        """Admits each further try of a call that this interceptor has admitted."""
        admission = _current.get()
        if admission is None or not admission.is_of(self, request):
            return await call_next(request)
        try:
            await admission.enter_again()
        except RateLimitTimeoutError as error:
            raise error from (request.attempts[-1].error if request.attempts else None)
        known = len(request.attempts)
        try:
            return await call_next(request)
        finally:
            self._learn(request, known)

    async def aclose(self) -> None:
        """Releases the connection to Redis of the running event loop."""
        await self._limiter.aclose()

    async def admit(self, request: CompletionRequest, scope: str, slots: int) -> Lease:
        """What the request takes of its limits."""
        try:
            return await self._limiter.admit(
                _demand(request, scope, slots), request.deadline, wait=self._wait
            )
        except RateLimitTimeoutError as error:
            error.args = (f"Profile {request.profile.name!r}: {error}",)
            raise

    def _learn(self, request: CompletionRequest, known: int) -> None:
        """Takes in what the provider has said about its limits since so many attempts were known."""
        attempts = request.attempts
        if len(attempts) > known and (said := attempts[-1].limits) is not None:
            failed = isinstance(attempts[-1].error, ProviderError)
            self._limiter.learn(_scope(request.profile), said, failed)


class _Admission:
    """One admitted call: what it has taken, for its first request and for each retry."""

    def __init__(self, interceptor: RateLimitInterceptor, request: CompletionRequest, scope: str) -> None:
        self.interceptor = interceptor
        self._request = request
        self._scope = scope
        self._first = len(request.attempts)
        self._leases: list[Lease] = []
        self._tries = 0

    def is_of(self, interceptor: RateLimitInterceptor, request: CompletionRequest) -> bool:
        """Whether the request is a try of this call, and not one of another call that was made within it."""
        return self.interceptor is interceptor and self._request.id == request.id

    async def enter(self, slots: int) -> None:
        self._leases.append(await self.interceptor.admit(self._request, self._scope, slots))

    async def enter_again(self) -> None:
        self._tries += 1
        if self._tries > 1:
            await self.enter(slots=0)

    async def end(self, completion: Completion | None, error: BaseException | None) -> None:
        attempts = self._request.attempts[self._first :]
        used = [(int(_was_sent(attempt)), _tokens(attempt.usage)) for attempt in attempts]
        if not used and completion is not None and error is None:  # answered by other means
            used = [(1, _tokens(completion.usage))]
        while self._leases:
            lease = self._leases.pop(0)
            mine, used = (used[:1], used[1:]) if self._leases else (used, [])
            await lease.settle(sum(sent for sent, _ in mine), sum(tokens for _, tokens in mine))

    def __del__(self) -> None:
        # A stream that was dropped with its event loop runs no callbacks; its slot must be free.
        for lease in self._leases:
            lease.drop()


_current: ContextVar[_Admission | None] = ContextVar("lmclient_admission", default=None)


def _scope(profile: ModelProfile) -> str:
    """The name under which calls are counted together."""
    if profile.limits.group is not None:
        return f"group:{profile.limits.group}"
    return f"profile:{profile.name}|{profile.url}"


def _is_unlimited(limits: Limits) -> bool:
    return (
        limits.requests_per_minute is None and limits.tokens_per_minute is None and limits.concurrency is None
    )


def _demand(request: CompletionRequest, scope: str, slots: int) -> Demand:
    limits = request.profile.limits
    tokens = 0
    if limits.tokens_per_minute is not None:
        tokens = estimate_tokens(request.conversation, request.options.tools)
        stated = stated_limits(request)
        if stated and all(stated):
            tokens += max(stated)
        else:  # what is only assumed must not make a call impossible
            tokens += max(0, min(ASSUMED_OUTPUT, limits.tokens_per_minute - tokens))
    return Demand(
        scope=scope,
        tokens=tokens,
        slots=slots,
        requests_per_minute=limits.requests_per_minute,
        tokens_per_minute=limits.tokens_per_minute,
        concurrency=limits.concurrency,
    )


def _was_sent(attempt: Attempt) -> bool:
    return not isinstance(attempt.error, ConnectError)


def _tokens(usage: Usage | None) -> int:
    return 0 if usage is None else usage.input_tokens + usage.output_tokens
