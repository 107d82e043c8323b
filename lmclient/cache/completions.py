"""The cache as calls see it: completions under keys, and never an error."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from lmclient.cache.entry import Entry, decode, encode, is_good
from lmclient.cache.store import CacheError, open_store
from lmclient.cache.workers import Workers
from lmclient.core.completion import Completion
from lmclient.profiles.model import ModelProfile
from lmclient.providers.redaction import secrets_of
from lmclient.settings import CacheSettings

T = TypeVar("T")
REST = 10.0
"""Seconds that a store is left alone after it could not be used."""

PATIENCE = 1.0
"""Seconds that a call waits for the store at most, and at most a quarter of what its own time has left."""

SHORTEST_KEY = 8
"""Characters of a key that is looked for in answers; shorter ones are placeholders such as "none"."""

REMEMBERED = 256
"""Entries that are remembered at most, of at most `LONGEST` bytes each."""

LONGEST = 65_536

_logger = logging.getLogger("lmclient.cache")


class CompletionCache:
    """Reads and keeps completions. What goes wrong is a miss, and a warning in the log.

    What was read is remembered until the store changes: handing a piece of work to a thread and
    back costs more than all the rest of a hit.
    """

    def __init__(self, settings: CacheSettings) -> None:
        self._ttl = settings.ttl
        self._store = open_store(settings)
        self._workers = Workers(self._store)
        self._remembered: dict[str, Entry] = {}
        self._version: object | None = None
        self._rests_until = 0.0
        self._failing = False

    async def get(self, key: str, deadline: float | None = None) -> Completion | None:
        """The completion under the key, None if there is none that can be read.

        `deadline` is that of the call, a `time.monotonic()` value.
        """
        version = self._store.version()
        if version is None or version != self._version:
            # A new one: a thread that still reads the old version fills the old one.
            self._remembered, self._version = {}, version
        remembered = self._remembered
        entry = remembered.get(key)
        if entry is None or entry.until <= time.time():
            entry = await self._ask(lambda: self._read(key, remembered), deadline)
        return None if entry is None else entry.completion

    async def put(
        self, key: str, completion: Completion, profile: ModelProfile, deadline: float | None = None
    ) -> None:
        """Keeps the completion, unless it repeats a key of the profile. A slow store is not waited for."""
        data = encode(completion, time.time() + self._ttl)
        if data is not None and not _holds_secret(data, profile):
            await self._ask(lambda: self._store.put(key, data), deadline)

    async def aclose(self) -> None:
        """Releases files, connections and threads; a later call opens them again."""
        await self._workers.aclose()

    def _read(self, key: str, remembered: dict[str, Entry]) -> Entry | None:
        data = self._store.get(key)
        if data is None:
            return None
        try:
            entry = decode(data)
            if not is_good(entry.completion):
                raise ValueError("it is no whole answer")
        except ValueError as error:
            _logger.warning("An entry of the cache is unreadable and will be replaced: %s.", error)
            return None
        if len(data) <= LONGEST and len(remembered) < REMEMBERED:
            remembered[key] = entry
        return entry

    async def _ask(self, work: Callable[[], T], deadline: float | None) -> T | None:
        """What `work` gives; None if the store cannot be used, or not in time."""
        if self._rests():
            return None
        limit = PATIENCE
        if deadline is not None:
            limit = max(0.0, min(PATIENCE, (deadline - time.monotonic()) / 4))
        try:
            return await self._workers.run(lambda: self._attempt(work), limit)
        except TimeoutError:
            if limit == PATIENCE:
                self._fail("The store of the cache does not answer.")
            return None

    def _attempt(self, work: Callable[[], T]) -> T | None:
        """What `work` gives, on a thread of the store."""
        if self._rests():  # it has failed while this piece of work stood in line
            return None
        try:
            result = work()
        except CacheError as error:
            self._fail(str(error))
            return None
        self._failing = False
        return result

    def _rests(self) -> bool:
        return self._failing and time.monotonic() < self._rests_until

    def _fail(self, reason: str) -> None:
        first, self._failing = not self._failing, True
        self._rests_until = time.monotonic() + REST
        if first:
            _logger.warning("%s Calls go on without it.", reason)


def _holds_secret(data: bytes, profile: ModelProfile) -> bool:
    """Whether the JSON repeats a key of the profile, be it escaped, or in a text that is JSON itself."""
    for secret in secrets_of(profile):
        if len(secret) >= SHORTEST_KEY:
            once = _escaped(secret)
            if any(form.encode() in data for form in {secret, once, _escaped(once)}):
                return True
    return False


def _escaped(text: str) -> str:
    return msgspec.json.encode(text)[1:-1].decode()
