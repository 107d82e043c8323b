"""The state of the limits on Redis, where all machines that use the same one share it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError

from lmclient.errors import ConfigurationError, LMClientError
from lmclient.limits.base import SPAN, Demand, Lease, Wait
from lmclient.limits.redis_scripts import KEYS, RENEWAL, SETTLE, TAKE
from lmclient.profiles.secrets import public_url

T = TypeVar("T")
logger = logging.getLogger("lmclient.limits")

POLL = 0.05
"""Seconds between two looks of the first in line: nobody says when another machine gives back."""
TURN = 0.005
"""Seconds between two looks where there is room, and only another process is to take it first."""
PATIENCE = 1.0
"""Seconds after which a process in line that was not seen again loses its place."""
LEASE = 30.0
"""Seconds after which a slot is free that its process does not renew, because it died."""
RENEW = 10.0
"""Seconds between two renewals."""
PREFIX = "lmclient:limits"
CONNECT = 1.0
"""Seconds to wait for a connection."""
ANSWER = 2.0
"""Seconds to wait for an answer of the server; a call waits no longer for one that hangs."""
UNSURE = 1000
"""Leases kept at most of which no answer told whether they were taken; the others expire."""


class RedisStore:
    """Limits on the Redis behind `url`, one connection pool for each event loop.

    `span` is how many seconds "per minute" means. `freed` is called with a scope when something of
    it was given back here.

    Processes stand in line one behind the other, each with its first waiting call. Running calls
    renew their slots; those of a process that dies are free after half a minute. While Redis cannot
    be reached, calls fail with `LMClientError`: to send them uncounted might break the limit.

    Raises `ConfigurationError` for a URL that redis-py does not take.
    """

    def __init__(self, url: str, freed: Callable[[str], None], *, span: float = SPAN) -> None:
        self._url = url
        self._span = span
        self._freed = freed
        self._line = secrets.token_hex(8)
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Client] = (
            weakref.WeakKeyDictionary()
        )
        self._running: set[asyncio.Task[Any]] = set()
        self._unsure: deque[RedisLease] = deque(maxlen=UNSURE)
        try:
            pool = _connection(url).connection_pool
            pool.connection_class(**pool.connection_kwargs)  # connects to nothing yet
        except (TypeError, ValueError):  # like the URL itself, their messages may show the password
            raise ConfigurationError(
                "rate_limit.storage_url is no URL of a Redis; expected redis://user:password@host:port/0, "
                "with no other options than those of redis-py."
            ) from None

    async def take(self, demand: Demand, ahead: int, *, waits: bool = True) -> Lease | Wait:
        """As `LimitStore.take`. Raises `LMClientError` if Redis does not answer."""
        lease = RedisLease(self, demand.scope)
        limits = (demand.requests_per_minute, demand.tokens_per_minute, demand.concurrency)
        arguments: list[str | int] = [
            lease.id,
            self._line if waits else "",
            *map(_microseconds, (self._span, LEASE, PATIENCE)),
            *(demand.tokens, demand.slots, ahead),
            *(-1 if limit is None else limit for limit in limits),
        ]
        # A task of its own, since redis-py can lose a cancellation (asyncio.wait_for of Python 3.11
        # does), and since what it takes after one must be given back.
        taking = self._in_background(self._run("take", demand.scope, arguments))
        try:
            taken, wait, at_least = await asyncio.shield(taking)
        except asyncio.CancelledError:
            self._in_background(self._undo(taking, lease))
            raise
        except (RedisError, OSError) as error:
            self._unsure.append(lease)  # Redis may yet carry it out
            raise LMClientError(
                f"The limits on {public_url(self._url)} cannot be read ({error}); see to that server, or set "
                "rate_limit.storage_url to another one or memory://."
            ) from error
        if self._unsure:
            self._in_background(self._give_back_unsure())
        if taken:
            if demand.slots and demand.concurrency is not None:
                self._hold(lease)
            return lease
        seconds = POLL if wait < 0 else min(wait / 1e6, POLL) or TURN
        return Wait(seconds, at_least / 1e6)

    async def settle(self, lease: RedisLease, requests: int, tokens: int) -> None:
        """Gives back what a lease took too much, also if the caller is cancelled meanwhile."""
        lease.drop()
        await asyncio.shield(self._in_background(self._settle(lease, requests, tokens)))

    async def aclose(self) -> None:
        loop = asyncio.get_running_loop()
        mine = [task for task in self._running if task.get_loop() is loop]
        await asyncio.gather(*mine, return_exceptions=True)
        client = self._clients.pop(loop, None)
        if client is not None:
            if client.renewing is not None:
                client.renewing.cancel()
            await client.connection.aclose()

    def _hold(self, lease: RedisLease) -> None:
        """Has a lease renewed until it is dropped."""
        loop = asyncio.get_running_loop()
        client = self._clients[loop]
        client.held[lease.id] = lease
        lease.held = client.held
        if client.renewing is None or client.renewing.done():
            client.renewing = loop.create_task(self._renew(client))

    async def _renew(self, client: _Client) -> None:
        while client.held:
            await asyncio.sleep(RENEW)
            scopes: dict[str, list[str]] = {}
            for lease in list(client.held.values()):
                scopes.setdefault(lease.scope, []).append(lease.id)
            for scope, ids in scopes.items():
                try:
                    await self._run("renew", scope, (_microseconds(LEASE), *ids))
                except (RedisError, OSError) as error:
                    logger.warning("Slots on %s cannot be renewed: %s", public_url(self._url), error)

    def _in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that goes on whoever is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _undo(self, taking: asyncio.Task[Any], lease: RedisLease) -> None:
        try:
            taken, *_ = await taking
        except (RedisError, OSError):
            self._unsure.append(lease)
            return
        if taken:
            await self._settle(lease, 0, 0)

    async def _give_back_unsure(self) -> None:
        """Gives back what was taken without an answer that said so, now that Redis answers again."""
        with contextlib.suppress(IndexError):  # until nothing is left, on whatever event loop
            while True:
                await self._settle(self._unsure.popleft(), 0, 0)

    async def _settle(self, lease: RedisLease, requests: int, tokens: int) -> None:
        try:
            await self._run("settle", lease.scope, (lease.id, requests, tokens))
        except (RedisError, OSError) as error:
            # The answer is there and paid for; what is not given back expires.
            logger.warning("The limits on %s cannot be written: %s", public_url(self._url), error)
        self._freed(lease.scope)

    async def _run(self, script: str, scope: str, arguments: Sequence[str | int]) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = _Client(self._url)
        # The braces keep the keys of a scope on one node of a cluster.
        keys = [f"{PREFIX}:{{{scope}}}:{name}" for name in KEYS]
        return await client.scripts[script](keys=keys, args=arguments)


class RedisLease:
    """What one call has taken on Redis."""

    def __init__(self, store: RedisStore, scope: str) -> None:
        self._store = store
        self.scope = scope
        self.id = secrets.token_hex(12)
        self.held: dict[str, RedisLease] = {}

    async def settle(self, requests: int, tokens: int) -> None:
        await self._store.settle(self, requests, tokens)

    def drop(self) -> None:
        """Leaves the slot to expire: a finalizer cannot wait for Redis."""
        self.held.pop(self.id, None)


class _Client:
    """The connections of one event loop, the scripts on them, and the leases to be renewed."""

    def __init__(self, url: str) -> None:
        self.connection = _connection(url)
        self.scripts = {
            "take": self.connection.register_script(TAKE),
            "settle": self.connection.register_script(SETTLE),
            "renew": self.connection.register_script(RENEWAL),
        }
        self.held: dict[str, RedisLease] = {}
        self.renewing: asyncio.Task[None] | None = None


def _connection(url: str) -> redis.asyncio.Redis:
    # What is sent twice since the server had closed an idle connection, or was restarted, is done once.
    again = Retry(NoBackoff(), 1, (ConnectionError,))
    return redis.asyncio.Redis.from_url(
        url, socket_connect_timeout=CONNECT, socket_timeout=ANSWER, retry=again
    )


def _microseconds(seconds: float) -> int:
    return max(1, round(seconds * 1e6))
