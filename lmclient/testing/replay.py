"""Serves recorded provider exchanges over HTTP, so a client can be tested against them.

    async with ReplayProvider.open("tests/exchanges", split=7) as provider:      (on the running event loop)
        base_url = provider.url("rivers", "v1")
        ...
        sent = provider.requests["rivers"][-1]["body"]

    with ReplayProvider.running({"rivers": {...}}) as provider:                  (in a thread of its own)
        ...

    lmclient testing serve replay DIR [--port P] [--split N]

``python -m lmclient.testing.replay`` is the same command. ``--port 0`` takes a free port; the line
printed at the start names it.

Exchanges
    A directory of JSON files, one exchange each, or the same in code: a list of dicts, or a dict of
    them by name. ``name``, ``path`` and ``response`` are used here; the other keys are for whoever
    checks a client against the exchange, and are free.

    name                   under which it is served; without it the file's name without .json, or
                           the key in the dict
    path                   where the request went, without the query string
    response.body          the body as text; of a stream, byte for byte what came
    response.status        default 200
    response.content_type  default application/json
    response.retry_after   the header's value; default null: no such header
    response.timing        default []; when the body came, as a list of [seconds since the response
                           began, number of bytes]
    protocol, host         which wire protocol the request spoke, and to whom
    stream, request        whether a stream was asked for, and the JSON body of the request
    expected               what a client should make of the response: text, reasoning, tool calls,
                           finish reason, usage, model, cost, error
    note                   anything peculiar about the recording

    Keep credentials and account names out of all of them.

Requests
    Each exchange is served under its own name: a client whose base URL is
    ``http://127.0.0.1:P/<name>`` plus the prefix of the recorded path (for ``/v1/chat/completions``
    that is ``http://127.0.0.1:P/<name>/v1``) gets the recorded status, content type, retry-after and
    body. The first segment of the path is compared (the name), and the last one (``completions``,
    ``messages``, ``gemini-2.5-flash:streamGenerateContent``); what stands between them and the query
    string (``?alt=sse``, ``?key=...``) is free. POST and GET both work.

    GET /_requests/<name>  a JSON list of the requests received for that exchange, oldest first:
                           {"method", "path", "query", "headers", "body"}. Credentials are redacted.
                           "body" is the parsed JSON, or the text if it is not JSON.
    anything else          404, with a JSON error in OpenAI's shape

Delivery
    ``split`` sends bodies in pieces of that many bytes, so that UTF-8 sequences, SSE lines and JSON
    tokens are cut anywhere. Recorded timing is played: each of its pieces leaves at its time (and is
    cut by ``split`` as well); without it the body leaves at once. A stream always has chunked transfer
    coding, one chunk a piece; any other body has a content-length.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from lmclient.testing.exchange import Exchange, Exchanges, RecordedResponse, load_exchanges
from lmclient.testing.hosting import running_in_thread
from lmclient.testing.http_request import BadRequest, ReceivedRequest, read_request

SECRET_HEADERS = {"authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"}
SECRET_PARAMETERS = {"key", "api_key", "access_token"}
REDACTED = "redacted"
KEEP_REQUESTS = 1000  # of each exchange; older ones are forgotten
MAX_HEAD = 256 * 1024  # bytes of a request line and headers


def as_shown(request: ReceivedRequest) -> dict[str, Any]:
    """The request as /_requests shows it, without credentials."""
    try:
        body: Any = json.loads(request.body) if request.body else None
    except ValueError:
        body = request.body.decode("utf-8", "replace")
    url = urlsplit(request.target)
    query = parse_qsl(url.query, keep_blank_values=True)
    return {
        "method": request.method,
        "path": url.path,
        "query": urlencode([(k, REDACTED if k in SECRET_PARAMETERS else v) for k, v in query]),
        "headers": {k: REDACTED if k in SECRET_HEADERS else v for k, v in request.headers.items()},
        "body": body,
    }


@dataclass(frozen=True)
class Reply:
    """A response to send: what an exchange holds, or an answer of the provider itself."""

    exchange: Exchange

    @classmethod
    def of_json(cls, payload: Any, status: int = 200) -> Reply:
        """A JSON body of the provider itself."""
        return cls(Exchange(path="", response=RecordedResponse(json.dumps(payload), status)))

    @classmethod
    def error(cls, status: int, message: str, code: str) -> Reply:
        """An error in the shape OpenAI gives it."""
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
        return cls.of_json({"error": error}, status)

    def head(self, keep_alive: bool) -> bytes:
        """The status line and the headers."""
        response = self.exchange.response
        try:
            phrase = HTTPStatus(response.status).phrase
        except ValueError:  # a status of a provider's own, such as 529
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {response.status} {phrase}", f"content-type: {response.content_type}"]
        if response.retry_after is not None:
            lines.append(f"retry-after: {response.retry_after}")
        length = f"content-length: {len(response.body.encode())}"
        lines.append("transfer-encoding: chunked" if self.exchange.streamed else length)
        lines.append(f"connection: {'keep-alive' if keep_alive else 'close'}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def send(self, writer: asyncio.StreamWriter, split: int | None, keep_alive: bool) -> None:
        """Write the response, in pieces of `split` bytes and at the recorded times."""
        clock = asyncio.get_running_loop().time
        began = clock()
        streamed = self.exchange.streamed
        writer.write(self.head(keep_alive))
        for due, part in self.exchange.parts():
            if due > 0:
                await asyncio.sleep(began + due - clock())
            size = split or max(len(part), 1)
            for start in range(0, len(part), size):
                piece = part[start : start + size]
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if streamed else piece)
                await writer.drain()
                if split:
                    await asyncio.sleep(0)  # let the piece leave before the next one is written
        if streamed:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


class ReplayProvider:
    """The server; `running()` or `open()` starts one.

    `port` is the port it listens on. `requests` holds, by exchange, what /_requests/<name> answers.
    """

    def __init__(self, exchanges: dict[str, Exchange], split: int | None = None) -> None:
        self.exchanges = exchanges
        self.split = split
        self.port = 0
        self.requests: defaultdict[str, deque[dict[str, Any]]] = defaultdict(
            lambda: deque(maxlen=KEEP_REQUESTS)
        )
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @classmethod
    def running(
        cls, exchanges: Exchanges, port: int = 0, split: int | None = None
    ) -> AbstractContextManager[ReplayProvider]:
        """Serve from a thread of its own while the context is open; else as `open`."""
        return running_in_thread(cls.open(exchanges, port, split))

    @classmethod
    @asynccontextmanager
    async def open(
        cls, exchanges: Exchanges, port: int = 0, split: int | None = None
    ) -> AsyncIterator[ReplayProvider]:
        """Serve a directory, or exchanges in code, from the running event loop while the context is open.

        Port 0 picks a free port; `split` is a number of bytes. Raises OSError if the port is taken, and
        ConfigurationError if the exchanges cannot be used.
        """
        provider = cls(load_exchanges(exchanges), split)
        server = await asyncio.start_server(provider._serve, "127.0.0.1", port, limit=MAX_HEAD, backlog=1024)
        provider.port = server.sockets[0].getsockname()[1]
        try:
            yield provider
        finally:
            server.close()
            for task, writer in provider._connections.items():
                writer.transport.abort()
                task.cancel()  # it may be waiting for the time of the next piece
            await asyncio.gather(*provider._connections, return_exceptions=True)

    def url(self, name: str = "", *prefix: str) -> str:
        """A base URL, e.g. url(name, "v1")."""
        return "/".join([f"http://127.0.0.1:{self.port}", *([name] if name else []), *prefix])

    def reply(self, request: ReceivedRequest) -> Reply:
        """What a request is answered; it is kept in `requests` if it names an exchange."""
        name, _, rest = urlsplit(request.target).path.lstrip("/").partition("/")
        if name == "_requests":
            if rest not in self.exchanges:
                return Reply.error(404, f"No exchange is named {rest!r}.", "unknown_exchange")
            return Reply.of_json(list(self.requests[rest]))
        exchange = self.exchanges.get(unquote(name))
        if exchange is None:
            return Reply.error(404, f"No exchange is named {name!r}.", "unknown_exchange")
        self.requests[exchange.name].append(as_shown(request))
        if request.method not in ("POST", "GET"):
            return Reply.error(
                405, f"Exchanges answer POST and GET, not {request.method}.", "method_not_allowed"
            )
        if not exchange.answers(rest):
            return Reply.error(
                404, f"{exchange.name} was recorded for {exchange.path}, not /{rest}.", "wrong_path"
            )
        return Reply(exchange)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            while request := await read_request(reader, writer):
                keep_alive = request.headers.get("connection", "").lower() != "close"
                await self.reply(request).send(writer, self.split, keep_alive)
                if not keep_alive:
                    break
        except BadRequest as problem:
            await Reply.error(400, str(problem), "bad_request").send(writer, None, False)
        except (asyncio.CancelledError, ConnectionError):
            pass  # the server stops, or the client left, as a cancelled stream does
        finally:
            del self._connections[task]
            writer.close()


if __name__ == "__main__":
    import sys

    from lmclient.testing.cli import app

    app(["serve", "replay", *sys.argv[1:]], prog_name="python -m lmclient.testing.replay")
