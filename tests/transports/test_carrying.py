"""An httpx2 client on top of a transport of ours, as the SDKs use it."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from lmclient import ConnectTimeoutError
from lmclient.core.http import HttpRequest
from lmclient.transports.aiohttp import AiohttpTransport
from lmclient.transports.base import HttpResponse
from lmclient.transports.httpx2 import client_on
from lmclient.transports.openai_sdk import OpenAITransport


class Unreachable:
    """A transport to a server that does not accept in time."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        raise ConnectTimeoutError("No connection within 1 s.")

    async def aclose(self) -> None:
        return None


async def test_errors_of_the_transport_pass_the_sdk_unchanged() -> None:
    client = openai.AsyncOpenAI(api_key="k", http_client=client_on(Unreachable()))
    with pytest.raises(ConnectTimeoutError, match="within 1 s"):
        await OpenAITransport(client).send(HttpRequest(url="http://127.0.0.1:9/v1/chat/completions"))


async def test_a_compressed_body_is_decompressed_once(fault: Any) -> None:
    transport = AiohttpTransport()
    zipped = fault("gzip")
    async with openai.AsyncOpenAI(
        api_key="k", base_url=zipped.url, http_client=client_on(transport)
    ) as client:
        answer = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Hello"}]
        )
    await transport.aclose()
    assert (answer.choices[0].message.content or "").startswith("The quick")
