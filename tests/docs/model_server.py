"""One server that stands for every vendor that the pages name, in the wire format of each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from .answers import Answer, answer

Json = dict[str, Any]
USAGE = {"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 21}


@asynccontextmanager
async def open_server() -> AsyncIterator[str]:
    """Its URL, while it runs."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", _respond)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _respond(request: web.Request) -> web.StreamResponse:
    path = request.path
    if request.method == "GET":
        return web.json_response(_models(path))
    body = await request.json()
    if path.endswith("/api/show"):
        return web.json_response({"capabilities": ["completion", "tools"]})
    if path.endswith("/tokenize"):
        return web.json_response({"tokens": list(range(len(body["content"].split())))})
    if path.endswith("/chat/completions"):
        events = [*_chat_events(body)] if body.get("stream") else None
        return await _send(request, events, _chat(body))
    if path.endswith("/completions"):
        return web.json_response(
            {
                "model": "docs",
                "choices": [
                    {
                        "text": answer(body["prompt"], [], after_tool=False, schema="").text,
                        "finish_reason": "stop",
                    }
                ],
                "usage": USAGE,
            }
        )
    return web.json_response(_other_wires(path, body))


def _models(path: str) -> Json:
    if path.endswith("/api/tags"):
        return {"models": [{"name": "qwen3.5:4b"}]}
    if "v1beta" in path:
        return {"models": [{"name": "models/gemini-3.5-flash"}]}
    return {"data": [{"id": "gpt-5-mini"}, {"id": "gpt-5-nano"}]}


def _answer(body: Json) -> Answer:
    last = body["messages"][-1]
    tools = [tool["function"]["name"] for tool in body.get("tools", ())]
    schema = body.get("response_format", {}).get("json_schema", {}).get("name", "")
    said = last["content"] if isinstance(last["content"], str) else json.dumps(last["content"])
    return answer(said, tools, after_tool=last["role"] == "tool", schema=schema)


def _message(said: Answer) -> Json:
    if not said.tool:
        return {"role": "assistant", "content": said.text}
    function = {"name": said.tool, "arguments": json.dumps(said.arguments)}
    return {
        "role": "assistant",
        "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}],
    }


def _chat(body: Json) -> Json:
    said = _answer(body)
    finish = "tool_calls" if said.tool else "stop"
    choice = {"index": 0, "message": _message(said), "finish_reason": finish}
    return {"id": "chatcmpl-1", "model": body["model"], "choices": [choice], "usage": USAGE}


def _chat_events(body: Json) -> list[Json]:
    said = _answer(body)
    deltas = [_message(said)] if said.tool else [{"content": f"{word} "} for word in said.text.split()]
    if not said.tool:
        deltas[-1] = {"content": said.text.split()[-1]}
    frame = {"id": "chatcmpl-1", "model": body["model"]}
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if said.tool else "stop"}
    return [
        *({**frame, "choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {**frame, "choices": [end]},
        {**frame, "choices": [], "usage": USAGE},
    ]


async def _send(request: web.Request, events: list[Json] | None, whole: Json) -> web.StreamResponse:
    if events is None:
        return web.json_response(whole)
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for event in events:
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")
    return response


def _other_wires(path: str, body: Json) -> Json:
    text = answer(json.dumps(body), [], after_tool=False, schema="").text
    if path.endswith("/messages"):
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 12, "output_tokens": 9},
        }
    if path.endswith(":generateContent"):
        candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 12, "candidatesTokenCount": 9, "totalTokenCount": 21}
        return {"candidates": [candidate], "usageMetadata": usage}
    if path.endswith("/api/chat"):
        message = {"role": "assistant", "content": text}
        counts = {"prompt_eval_count": 12, "eval_count": 9}
        return {"model": body["model"], "message": message, "done": True, "done_reason": "stop", **counts}
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": 12, "output_tokens": 9, "total_tokens": 21}
    return {"id": "resp_1", "status": "completed", "model": body["model"], "output": [item], "usage": usage}
