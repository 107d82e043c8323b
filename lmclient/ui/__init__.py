"""Answers for user interfaces: a client's stream as the bytes that a browser's library reads.

    async def chat(request):                                        Starlette; FastAPI alike
        stream = client.stream("m", (await request.json())["text"])
        return StreamingResponse(vercel_ui_stream(stream), headers=VERCEL_UI_HEADERS)

Each helper takes a stream that has not been entered, enters it, and closes it when the answer is over
or the reader goes away. What goes wrong becomes the protocol's own error event, without secrets.
"""

from __future__ import annotations

from lmclient.ui.ag_ui import ag_ui_events
from lmclient.ui.events import SSE_HEADERS
from lmclient.ui.openai import openai_sse
from lmclient.ui.plain import sse_response
from lmclient.ui.vercel import VERCEL_UI_HEADERS, vercel_ui_stream

__all__ = [
    "SSE_HEADERS",
    "VERCEL_UI_HEADERS",
    "ag_ui_events",
    "openai_sse",
    "sse_response",
    "vercel_ui_stream",
]
