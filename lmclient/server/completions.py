"""POST /v1/completions: the older API, for prompts instead of conversations.

https://platform.openai.com/docs/api-reference/completions. A profile of the provider `openai-text`
(or `llama-cpp` with a `prompt_format`) gets the prompt as it is, without its prompt format; it then
answers alone, without the fallbacks of the category. Any other profile gets it as the turn of a user.
Fields that are not in `CompletionsBody` are accepted and go nowhere.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from lmclient.client import CallOptions
from lmclient.core.completion import Chunk, Completion
from lmclient.core.conversation import Conversation
from lmclient.errors import BadRequestError, UnsupportedOptionError
from lmclient.server.call import Call
from lmclient.server.chat import Sampling, StreamOptions, sampling_options
from lmclient.server.reading import decode
from lmclient.ui.events import encode, event
from lmclient.ui.openai import DONE
from lmclient.ui.openai_answer import finish_reason, usage_json
from lmclient.ui.openai_errors import OpenAIError

Json = dict[str, Any]


class CompletionsBody(Sampling, kw_only=True):
    """The fields of a request that mean something here."""

    prompt: str | list[str]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    best_of: int | None = None
    echo: bool | None = None
    suffix: str | None = None


_decoder = msgspec.json.Decoder(CompletionsBody)


def parse_completions(body: bytes) -> Call:
    """The call that a request asks for. Raises `BadRequestError` and `UnsupportedOptionError`."""
    asked = decode(body, _decoder)
    for name, value in (("n", asked.n), ("best_of", asked.best_of)):
        if value not in (None, 1):
            raise UnsupportedOptionError(f"{name} is {value}; the gateway gives one answer.")
    if asked.echo or asked.suffix:
        raise UnsupportedOptionError("echo and suffix are not supported.")
    usage = asked.stream_options is not None and bool(asked.stream_options.include_usage)
    return Call(
        model=asked.model,
        conversation=Conversation.create(_prompt(asked.prompt)),
        options=_options(asked),
        stream=bool(asked.stream),
        writer=lambda: CompletionsWriter(asked.model, usage),
        answer=text_completion,
        raw_prompt=True,
    )


def text_completion(completion: Completion) -> Json:
    """The body of a whole answer."""
    choice = _choice(completion.text, finish_reason(completion))
    return {**_head(completion.model), "choices": [choice], "usage": usage_json(completion)}


class CompletionsWriter:
    """Writes the chunks of one answer. Reasoning has no place in this API."""

    def __init__(self, model: str, include_usage: bool) -> None:
        self._head = b"data: " + encode(_head(model))[:-1]
        self._text = self._head + b',"choices":[{"index":0,"logprobs":null,"finish_reason":null,"text":'
        self._include_usage = include_usage

    def begin(self) -> bytes:
        return b""

    def chunks(self, batch: Sequence[Chunk]) -> bytes:
        return b"".join(self._text + encode(chunk.text) + b"}]}\n\n" for chunk in batch if chunk.text)

    def end(self, completion: Completion) -> bytes:
        last = self._head + b',"choices":' + encode([_choice("", finish_reason(completion))]) + b"}\n\n"
        if self._include_usage:
            last += self._head + b',"choices":[],"usage":' + encode(usage_json(completion)) + b"}\n\n"
        return last + DONE

    def fail(self, error: Exception) -> bytes:
        return event(OpenAIError(error).body)


def _prompt(prompt: str | list[str]) -> str:
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1:
        raise BadRequestError(f"prompt has {len(prompt)} entries; the gateway answers one.")
    return prompt[0]


def _options(asked: CompletionsBody) -> CallOptions:
    options = sampling_options(asked)
    options["max_tokens"] = asked.max_tokens
    options["stop"] = asked.stop
    options["seed"] = asked.seed
    return options


def _head(model: str) -> Json:
    return {
        "id": f"cmpl-{secrets.token_hex(12)}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
    }


def _choice(text: str, reason: str) -> Json:
    return {"index": 0, "logprobs": None, "finish_reason": reason, "text": text}
