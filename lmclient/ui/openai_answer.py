"""Answers in the shapes of OpenAI's chat completions.

https://platform.openai.com/docs/api-reference/chat/object; `reasoning_content` is the name that most
compatible servers and clients use.
"""

from __future__ import annotations

import time
from typing import Any

from lmclient.core.completion import Completion, FinishReason
from lmclient.core.tools import ToolCall
from lmclient.ui.events import encode

Json = dict[str, Any]


def chat_completion(completion: Completion, id: str) -> Json:
    """The body of a whole chat completion."""
    message: Json = {
        "role": "assistant",
        "content": completion.text or (None if completion.tool_calls else ""),
        "refusal": None,
    }
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if completion.tool_calls:
        message["tool_calls"] = [call_json(call) for call in completion.tool_calls]
    return {
        "id": id,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": completion.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": finish_reason(completion),
            }
        ],
        "usage": usage_json(completion),
    }


def call_json(call: ToolCall) -> Json:
    """A tool call; arguments that are no JSON object stay as the model wrote them."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_text(call)},
    }


def arguments_text(call: ToolCall) -> str:
    """The arguments as the text that OpenAI's APIs carry."""
    return call.raw_arguments if call.arguments is None else encode(call.arguments).decode()


def finish_reason(completion: Completion) -> str:
    """The reason; one that the provider did not name counts as "stop"."""
    reason = completion.finish_reason
    return "stop" if reason is FinishReason.UNKNOWN else reason.value


def usage_json(completion: Completion) -> Json:
    """The usage, with the `cost` where it is known, as OpenRouter and others report it.

    `cost_currency` is only there for another currency than US dollars.
    """
    usage = completion.usage
    body: Json = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
    return body | cost_json(completion)


def cost_json(completion: Completion) -> Json:
    """The cost as a field of a usage object, nothing where it is not known."""
    if completion.cost is None:
        return {}
    cost: Json = {"cost": completion.cost}
    if completion.currency != "USD":
        cost["cost_currency"] = completion.currency
    return cost
