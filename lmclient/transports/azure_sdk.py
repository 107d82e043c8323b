"""Carries requests through azure-ai-inference's `ChatCompletionsClient`: its pipeline signs them."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from azure.ai.inference.aio import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
)
from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.transport import AsyncHttpTransport
from azure.core.rest import AsyncHttpResponse
from azure.core.rest import HttpRequest as AzureRequest

from lmclient.core.http import HttpRequest
from lmclient.errors import (
    AuthenticationError,
    ConnectError,
    ConnectTimeoutError,
    LMClientError,
    StreamInterruptedError,
)
from lmclient.transports.base import HttpResponse, Transport
from lmclient.transports.credentials import (
    CREDENTIALS,
    instead_of_the_clients,
    origin,
    without_credentials,
    without_echo,
)


class AzureTransport:
    """Carries requests with the user's client, through its whole pipeline.

    The pipeline's retries and redirects are off for these requests; the client stays the user's to
    close. `base_url` is that of profiles without a URL.
    """

    def __init__(self, client: ChatCompletionsClient) -> None:
        self._client = client

    @property
    def base_url(self) -> str:
        """The client's endpoint with its api-version, which it adds to calls of its own only."""
        config = self._client._config  # there is no public way to read them
        return f"{config.endpoint}?{urlencode({'api-version': config.api_version})}"

    async def send(self, request: HttpRequest) -> HttpResponse:
        response: AsyncHttpResponse = await run_pipeline(self._client, request, self.base_url)
        return without_echo(AzureResponse(response), response.request.headers)

    async def aclose(self) -> None:
        return None


class AzureResponse:
    """An answer of azure-core."""

    def __init__(self, response: AsyncHttpResponse) -> None:
        self._response = response
        self._pieces = response.iter_bytes()
        self._at_end = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def at_end(self) -> bool:
        return self._at_end

    async def read(self) -> bytes:
        try:
            async for piece in self._pieces:
                if piece:  # a piece of a compressed body may hold nothing yet
                    return piece
        except (AzureError, OSError, zlib.error) as error:
            server = origin(self._response.request.url)
            raise StreamInterruptedError(f"{server} broke the connection in mid-answer.") from error
        self._at_end = True
        return b""

    async def aclose(self) -> None:
        await self._response.close()

    def abort(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.aclose())


class AzurePipeline:
    """Signs requests in a client's pipeline and lets another transport carry them.

    So proxies, TLS and event loops are that transport's business. `scope` is that of the tokens.
    """

    def __init__(
        self,
        endpoint: str,
        credential: AzureKeyCredential | AsyncTokenCredential,
        carrier: Transport,
        *,
        scope: str,
    ) -> None:
        self._endpoint = endpoint
        self._client = ChatCompletionsClient(
            endpoint, credential, transport=_Carrier(carrier), credential_scopes=[scope]
        )

    async def send(self, request: HttpRequest) -> HttpResponse:
        answer: _Carried = await run_pipeline(self._client, request, self._endpoint)
        return without_echo(answer.response, answer.request.headers)

    async def aclose(self) -> None:
        return None


async def run_pipeline(client: ChatCompletionsClient, request: HttpRequest, base_url: str) -> Any:
    """What the client's pipeline answers: whatever its transport returned."""
    headers = {"accept-encoding": "gzip", **without_credentials(request.headers)}
    options: dict[str, Any] = {"retry_total": 0, "permit_redirects": False}
    if request.connect_timeout is not None:
        options["connection_timeout"] = request.connect_timeout
    options["read_timeout"] = None  # the caller watches over the rest
    given = instead_of_the_clients(request, base_url)
    if given is not None:
        options["raw_request_hook"] = _signed_with(given)
    prepared = AzureRequest(request.method, request.url, headers=headers, content=request.body or None)
    try:
        return await client.send_request(prepared, stream=True, **options)
    except LMClientError:  # of the transport that carries for the pipeline; some are OSErrors
        raise
    except AzureError as error:
        raise _translated(error, request) from error
    except (OSError, ValueError) as error:
        raise ConnectError(f"No answer from {origin(request.url)}: {error}.") from error


def _signed_with(credentials: dict[str, str]) -> Callable[[PipelineRequest[AzureRequest]], None]:
    """A hook that replaces the pipeline's credentials; it runs after the policies that set them."""

    def replace(request: PipelineRequest[AzureRequest]) -> None:
        headers = request.http_request.headers
        for name in [name for name in headers if name.lower() in CREDENTIALS]:
            del headers[name]
        headers.update(credentials)

    return replace


def _translated(error: AzureError, request: HttpRequest) -> ConnectError | AuthenticationError:
    server = origin(request.url)
    if isinstance(error, ServiceRequestTimeoutError):
        return ConnectTimeoutError(
            f"No connection to {server} within {request.connect_timeout or 0:g} s; "
            "check the url, or raise timeouts.connect of the profile."
        )
    reason = " ".join(str(error.message).split()).rstrip(".") or type(error).__name__
    if isinstance(error, ClientAuthenticationError):
        return AuthenticationError(f"The credential gave no token for {server}: {reason}.")
    if isinstance(error, ServiceRequestError):
        return ConnectError(f"Cannot connect to {server}: {reason}.")
    return ConnectError(f"No answer from {server}: {reason}.")


class _Carried:
    """As much of a response as the policies look at."""

    def __init__(self, request: AzureRequest, response: HttpResponse) -> None:
        self.request = request
        self.response = response
        self.status_code = response.status
        self.headers = response.headers


class _Carrier(AsyncHttpTransport[AzureRequest, Any]):
    """The end of a pipeline, where a transport of ours takes over."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: AzureRequest, **options: Any) -> _Carried:
        headers = {name.lower(): value for name, value in request.headers.items()}
        headers.pop("content-length", None)
        headers.pop("accept-encoding", None)
        sent = HttpRequest(
            method=request.method,
            url=request.url,
            headers=headers,
            body=request.content or b"",
            connect_timeout=options.get("connection_timeout"),
        )
        return _Carried(request, await self._transport.send(sent))

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        return None
