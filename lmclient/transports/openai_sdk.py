"""Carries requests through an `openai.AsyncOpenAI` or `AsyncAzureOpenAI`: its auth, proxies, mocks."""

from __future__ import annotations

from typing import cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2
import openai
from openai import Omit

from lmclient.core.http import HttpRequest
from lmclient.errors import AuthenticationError, ConfigurationError, ConnectError, LMClientError
from lmclient.transports.base import HttpResponse
from lmclient.transports.credentials import (
    instead_of_the_clients,
    origin,
    without_credentials,
    without_echo,
)
from lmclient.transports.httpx2 import NETWORK_ERRORS, Httpx2Response, connect_error, timeout_of


class OpenAITransport:
    """Carries requests with the user's OpenAI client, which signs them.

    The client's retries, timeouts and redirects are off for these requests; it stays the user's to
    close. `base_url` is that of profiles without a URL. See `credentials.py` for whose key is sent.
    """

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client

    @property
    def base_url(self) -> str:
        """The client's base URL, with the query that it adds to each request, such as api-version."""
        query = {name: value for name, value in self._client.default_query.items() if isinstance(value, str)}
        parts = urlsplit(str(self._client.base_url))
        return urlunsplit(parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), **query})))

    async def send(self, request: HttpRequest) -> HttpResponse:
        if self._client.is_closed():
            raise ConfigurationError(
                f"The openai.{type(self._client).__name__} given as `transport` is closed; make a new one."
            )
        try:
            response = await self._call(request)
        except LMClientError:  # of the transport that carries for the client; some are OSErrors
            raise
        except openai.APIStatusError as error:
            response = error.response
        except openai.APIConnectionError as error:
            raise connect_error(error.__cause__ or error, request) from error
        except openai.OpenAIError as error:
            raise AuthenticationError(
                f"The OpenAI client has no credentials for {origin(request.url)}: {error}"
            ) from error
        except NETWORK_ERRORS as error:  # in mid of an error's body, which the SDK reads
            raise ConnectError(f"{origin(request.url)} broke the connection in an error's body.") from error
        if not isinstance(response, httpx2.Response):
            raise ConfigurationError(
                "The OpenAI client given as `transport` has an http_client of httpx; give it one of httpx2."
            )
        return without_echo(Httpx2Response(response), response.request.headers)

    async def aclose(self) -> None:
        return None

    async def _call(self, request: HttpRequest) -> httpx2.Response:
        url = urlsplit(request.url)
        headers: dict[str, str | Omit] = {**without_credentials(request.headers)}
        given = instead_of_the_clients(request, str(self._client.base_url))
        if given is not None:
            headers["Authorization"] = given.get("authorization", Omit())
            headers["api-key"] = given.get("api-key", Omit())
        options = openai.RequestOptions(
            headers=headers,
            params=dict(parse_qsl(url.query, keep_blank_values=True)),  # so it wins over the client's own
            timeout=timeout_of(request),
            max_retries=0,
            follow_redirects=False,
        )
        path = urlunsplit(url._replace(query=""))
        # The type of a stream is what the SDK would make of it; asked for the response, it gives that.
        if request.method == "GET":
            response = await self._client.get(
                path, cast_to=httpx2.Response, options=options, stream=True, stream_cls=_AS_IT_IS
            )
        else:
            response = await self._client.post(
                path,
                cast_to=httpx2.Response,
                content=request.body,
                options=options,
                stream=True,
                stream_cls=_AS_IT_IS,
            )
        return cast(httpx2.Response, response)


_AS_IT_IS = openai.AsyncStream[object]
