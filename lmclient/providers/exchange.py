"""One HTTP exchange with a provider: the request out, the answer in as chunks, within its time."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

import msgspec

from lmclient.core.completion import Chunk, Completion
from lmclient.core.http import HttpRequest
from lmclient.core.request import Attempt, CompletionRequest
from lmclient.errors import (
    LMClientError,
    ProtocolError,
    ProviderError,
    StreamInterruptedError,
    TransportError,
)
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.base import Decoder, WireProtocol, is_cut
from lmclient.providers.clock import Watchdog, too_late
from lmclient.providers.finishing import completion_of
from lmclient.providers.rate_limit_headers import provider_limits
from lmclient.providers.redaction import redact_error
from lmclient.providers.retry_after import retry_after
from lmclient.transports.base import HttpResponse, Transport

MAX_REDIRECTS = 3
MAX_BODY = 64 * 2**20
MAX_ERROR_BODY = 2**20
LINGER = 0.1
"""Seconds that a finished stream may take to close, for its connection to be used again."""


class Exchange:
    """The source of a stream that comes from a provider. Opened by `open`, read by a stream.

    Is no attempt, but a `TimeoutError`, if the call's time is over.
    """

    def __init__(self, request: CompletionRequest, protocol: WireProtocol, decoder: Decoder) -> None:
        loop = asyncio.get_running_loop()
        profile = request.profile
        left = None if request.deadline is None else request.deadline - time.monotonic()
        if left is not None and left <= 0:
            raise too_late(request)
        self._started = now = loop.time()
        deadline = None if left is None else now + left
        self._loop = loop
        self._request = request
        self._protocol = protocol
        self._decoder = decoder
        self._idle = profile.timeouts.idle
        self._watchdog = Watchdog(loop, deadline, look=self._idle)
        self._response: HttpResponse | None = None
        self._first: Sequence[Chunk] = ()
        self._over = False
        self._first_token: float | None = None
        self.attempt = Attempt(profile=profile, started=datetime.datetime.now(datetime.UTC))
        request.attempts.append(self.attempt)

    async def open(self, transport: Transport, http: HttpRequest) -> None:
        """Sends the request and waits for the first chunk, or all of an answer that is no stream."""
        self._watchdog.allow(self._request.profile.timeouts.first_byte, "first_byte")
        try:
            await self._watchdog.wait(self._begin(transport, http))
        except BaseException as error:
            await self.aclose(error)
            raise

    async def _begin(self, transport: Transport, http: HttpRequest) -> None:
        response = await transport.send(http)
        if 300 <= response.status < 400:
            response = await redirected(transport, http, response)
        self._response = response
        self.attempt.limits = provider_limits(response.headers)
        if response.status >= 300:
            raise await read_error(response, self._protocol)
        while not self._over and not (self._first and self._request.stream):
            self._first = await self._advance(response)

    async def next_batch(self) -> Sequence[Chunk]:
        batch, self._first = self._first, ()
        if batch:
            return batch
        if self._over:
            return ()
        self._watchdog.allow(self._idle, "idle")
        try:
            return await self._watchdog.wait(self._following())
        except BaseException as error:
            await self.aclose(error)
            raise

    async def _following(self) -> Sequence[Chunk]:
        assert self._response is not None
        while not self._over:
            if batch := await self._advance(self._response):
                return batch
        return ()

    def result(self) -> Completion:
        return self.attempt.completion or self._completion(self._loop.time() - self._started)

    async def aclose(self, error: BaseException | None = None) -> None:
        """Ends the exchange, if it has not ended, and books what has arrived."""
        self._watchdog.stop()
        if self._response is not None:
            await self._response.aclose()
        if not self._over:
            self._over = True
            if isinstance(error, LMClientError):
                placed(error, self._request.profile)
            self._book(error or asyncio.CancelledError("the caller left the stream"))
            if isinstance(error, TransportError):
                error.partial = self.attempt.completion

    def abort(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        self._watchdog.stop()
        if self._response is not None:
            self._response.abort()

    async def _advance(self, response: HttpResponse) -> Sequence[Chunk]:
        """The chunks of the next piece of the body; sets `_over` at its end."""
        decoder = self._decoder
        if decoder.failure is not None:
            raise _failure(decoder.failure, response)
        events = decoder.events
        data = await response.read()
        at_end = not data or response.at_end
        chunks = decoder.feed(data) if data else []
        if at_end or decoder.ended:
            chunks += decoder.finish()
        if chunks and self._first_token is None and self._request.stream:
            self._first_token = self._loop.time() - self._started
        if decoder.failure is not None:
            if not chunks:
                raise _failure(decoder.failure, response)
        elif at_end or decoder.ended:
            await self._end(response, at_end)
        elif decoder.events != events:
            self._watchdog.allow(self._idle, "idle")
        return chunks

    async def _end(self, response: HttpResponse, at_end: bool) -> None:
        if not at_end:
            await self._drain(response)
        self._watchdog.stop()
        await response.aclose()
        self._over = True
        self._book(None)

    async def _drain(self, response: HttpResponse) -> None:
        """Reads what follows the announced end, so that the connection can be used again."""
        self._watchdog.allow(LINGER, "idle")
        try:
            while await self._watchdog.wait(response.read()):
                pass
        except (StreamInterruptedError, TimeoutError):
            pass  # the answer is whole; only its connection is of no more use

    def _book(self, error: BaseException | None) -> None:
        attempt = self.attempt
        attempt.duration = duration = self._loop.time() - self._started
        attempt.error = error
        received = self._response is not None and self._response.status < 300
        if error is not None and received:
            self._decoder.answer.end()  # what a splitter holds back has arrived, too
        if error is None or received:
            attempt.completion = self._completion(duration)

    def _completion(self, duration: float) -> Completion:
        return completion_of(self._decoder.answer, self._request, duration, self._first_token)


async def redirected(transport: Transport, http: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response that a few redirects, of which this is the first, lead to."""
    left = MAX_REDIRECTS
    while 300 <= response.status < 400 and (location := response.headers.get("location")):
        await response.aclose()
        if not left:
            raise ProtocolError(
                f"The server redirected more than {MAX_REDIRECTS} times; check the profile's url."
            )
        left -= 1
        http = redirection(http, location, response.status)
        response = await transport.send(http)
    return response


def _failure(error: LMClientError, response: HttpResponse) -> LMClientError:
    """The error of the decoder. JSON that stops in the middle was cut if nothing says how long it is."""
    framed = any(name in response.headers for name in ("content-length", "transfer-encoding"))
    if framed or not is_cut(error):
        return error
    return StreamInterruptedError("The connection was closed in mid-answer.")


async def read_error(response: HttpResponse, protocol: WireProtocol) -> ProviderError:
    """The error that a response with an error status means."""
    body = b""
    try:
        while len(body) < MAX_ERROR_BODY and (piece := await response.read()):
            body += piece
    except StreamInterruptedError:
        pass  # the status says what is wrong; a cut body only makes the message shorter
    error = protocol.error(response.status, response.headers, body)
    if (wait := retry_after(response.headers)) is not None:  # else what the body says
        error.retry_after = wait
    return error


def placed(error: LMClientError, profile: ModelProfile) -> None:
    """Adds to an error of the exchange where it happened, and takes the profile's secrets out of it."""
    if isinstance(error, ProviderError):
        error.provider = profile.provider
    if isinstance(error, ProviderError | ProtocolError | TransportError):
        error.args = (f"Profile {profile.name!r}: {error}",)
    redact_error(error, profile)


async def read_all(
    transport: Transport, http: HttpRequest, protocol: WireProtocol, profile: ModelProfile
) -> bytes:
    """The body of a plain answer, such as a list of models. Raises as a completion does."""
    loop = asyncio.get_running_loop()
    watchdog = Watchdog(loop, loop.time() + profile.timeouts.total)
    watchdog.allow(profile.timeouts.first_byte, "first_byte")

    async def read() -> bytes:
        response = await transport.send(http)
        if 300 <= response.status < 400:
            response = await redirected(transport, http, response)
        try:
            if response.status >= 300:
                raise await read_error(response, protocol)
            body = bytearray()
            while piece := await response.read():
                watchdog.allow(profile.timeouts.idle, "idle")
                body += piece
                if len(body) > MAX_BODY:
                    raise ProtocolError(f"The server's answer is longer than {MAX_BODY >> 20} MiB.")
            return bytes(body)
        finally:
            await response.aclose()

    try:
        return await watchdog.wait(read())
    except LMClientError as error:
        placed(error, profile)
        raise
    finally:
        watchdog.stop()


def redirection(http: HttpRequest, location: str, status: int) -> HttpRequest:
    """The request to where the server points, without credentials if that is another server.

    Raises `ProtocolError` for a redirect that would turn the call into a GET, or that leads nowhere.
    """
    url = _joined(http.url, location)
    if http.method != "GET" and status not in (307, 308):
        to = urlsplit(url)
        raise ProtocolError(
            f"The server redirects the call to {to.scheme}://{to.netloc.rpartition('@')[2]} with status "
            f"{status}, which drops the body; set the profile's url to that server."
        )
    if urlsplit(url)[:2] == urlsplit(http.url)[:2]:
        return msgspec.structs.replace(http, url=url)
    kept = ("accept", "content-type", "user-agent")
    headers = {name: value for name, value in http.headers.items() if name in kept}
    return msgspec.structs.replace(http, url=url, headers=headers, anonymous=True)


def _joined(base: str, location: str) -> str:
    try:
        url = urljoin(base, location)
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ProtocolError(
            "The server's redirect leads to no http:// or https:// URL; check the profile's url."
        )
    return url
