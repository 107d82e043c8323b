"""The fault provider's server: all its input and output happens here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from lmclient.testing.fault.call import Call, Json
from lmclient.testing.fault.counters import Counters
from lmclient.testing.fault.reply import Ending, Reply, encode, error, plain
from lmclient.testing.fault.scenarios import SCENARIOS
from lmclient.testing.hosting import running_in_thread
from lmclient.testing.http_request import BadRequest, ReceivedRequest, read_request

SETTLE = 0.05  # seconds for the client to read what was written, before a reset


def as_call(request: ReceivedRequest, seed: int) -> Call:
    """What a scenario needs to know of a request."""
    try:
        body = json.loads(request.body)
    except ValueError:
        body = None
    prefix, _, rest = request.target.partition("?")[0].removeprefix("/").partition("/")
    scenario, _, key = prefix.partition("~")
    return Call(
        method=request.method,
        scenario=scenario,
        key=key,
        path=f"/{rest}",
        headers=request.headers,
        body=body if isinstance(body, dict) else {},
        seed=seed,
    )


async def play(reply: Reply, writer: asyncio.StreamWriter) -> None:
    """Write a reply; CancelledError or ConnectionError if the client hangs up before the end."""
    await asyncio.sleep(reply.before)
    for number, data in enumerate(reply.writes):
        await asyncio.sleep(reply.between if number else 0)  # 0: give way to other connections
        writer.write(data)
        await writer.drain()
    if reply.then is Ending.HANG:
        await asyncio.Event().wait()
    elif reply.then is Ending.RESET:
        await asyncio.sleep(SETTLE)
        linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()


class Connection(asyncio.StreamReaderProtocol):
    """asyncio's streams, except that the handler is cancelled as soon as the client hangs up.

    With the streams as they are, a handler that sleeps would not notice until its next write.
    """

    def __init__(
        self, handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    ) -> None:
        super().__init__(asyncio.StreamReader(), self._start)
        self._handle = handle
        self._handler: asyncio.Task[None] | None = None

    async def _start(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._handler = asyncio.current_task()
        try:
            await self._handle(reader, writer)
        except (asyncio.CancelledError, ConnectionError, BadRequest):
            pass  # the client is gone or talks nonsense, or the server stops
        finally:
            writer.close()

    def eof_received(self) -> bool:
        super().eof_received()
        self._hung_up()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._hung_up()
        super().connection_lost(exc)

    def _hung_up(self) -> None:
        if self._handler:
            self._handler.cancel()


class FaultProvider:
    """The server and its counters; `running()` or `open()` starts one.

    `port` is the port it listens on. `url` and `stats` may be called from any thread.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.port = 0
        self._seed = seed
        self._counters: dict[str, Counters] = {}
        self._conversations: set[asyncio.Task[None]] = set()

    @classmethod
    def running(cls, *, port: int = 0, seed: int = 0) -> AbstractContextManager[FaultProvider]:
        """Serve from a thread of its own while the context is open; port 0 picks a free port.

        Raises OSError if the port is taken.
        """
        return running_in_thread(cls.open(port=port, seed=seed))

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, *, port: int = 0, seed: int = 0) -> AsyncIterator[FaultProvider]:
        """Serve from the running event loop while the context is open; port 0 picks a free port.

        Listens on 127.0.0.1, and on ::1 where there is one. Raises OSError if the port is taken.
        """
        provider = cls(seed=seed)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(provider._end_conversations)
            provider.port = await provider._listen("127.0.0.1", port, stack)
            with contextlib.suppress(OSError):
                await provider._listen("::1", provider.port, stack)
            yield provider

    def url(self, scenario: str, *, key: str = "") -> str:
        """The base URL for a client; KeyError if there is no such scenario."""
        if scenario not in SCENARIOS:
            raise KeyError(scenario)
        return f"http://127.0.0.1:{self.port}/{scenario}{'~' if key else ''}{key}/v1"

    def stats(self) -> dict[str, Json]:
        """What GET /_stats answers: the counters of each scenario and key that had a request."""
        return {name: counters.as_json() for name, counters in list(self._counters.items())}

    async def _listen(self, host: str, port: int, stack: contextlib.AsyncExitStack) -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self._converse), host, port, backlog=2048)
        stack.callback(server.close)
        bound: int = server.sockets[0].getsockname()[1]
        return bound

    async def _end_conversations(self) -> None:
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        conversation = asyncio.current_task()
        assert conversation is not None
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)
        while request := await read_request(reader, writer):
            call = as_call(request, self._seed)
            reply = await self._answer(call, writer)
            if reply.then is not Ending.KEEP_ALIVE or call.headers.get("connection") == "close":
                break

    async def _answer(self, call: Call, writer: asyncio.StreamWriter) -> Reply:
        if call.scenario in SCENARIOS:
            return await self._answer_scenario(call, writer)
        if call.scenario == "_stats":
            reply = plain(call, encode(self.stats()))
        else:
            reply = error(
                call, 404, f"fault_provider has no scenario {call.scenario!r}", code="fault_provider"
            )
        await play(reply, writer)
        return reply

    async def _answer_scenario(self, call: Call, writer: asyncio.StreamWriter) -> Reply:
        name = f"{call.scenario}~{call.key}" if call.key else call.scenario
        counters = self._counters.setdefault(name, Counters())
        with counters.counting(call, writer.get_extra_info("peername")):
            problem = call.problem()
            if problem:
                reply = error(call, 400, f"fault_provider: {problem}", code="fault_provider")
            else:
                reply = SCENARIOS[call.scenario](replace(call, number=counters.requests))
            await play(reply, writer)
        return reply


running = FaultProvider.running
