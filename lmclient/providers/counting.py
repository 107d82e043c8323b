"""How many tokens a request will cost, counted before it is sent.

- Text completion: the tokens of the very prompt, and BOS where the server puts it in front.
- Chat on llama.cpp (`tokenizer = "llama-server"`, and the provider `llama-cpp`): the server applies
  its template and tokenizes the outcome, so that the count equals the usage that it reports.
- All other chat: the rules of OpenAI's chat messages with the profile's tokenizer; exact for OpenAI's
  models without tools, an approximation for Anthropic, Gemini and the rest. `lmclient.tokens.messages`
  and `lmclient.tokens.picking` say by how much they are off.

Of a response format nothing is counted. Tokenizers inside this process work in a worker thread: loading
one takes half a second, and a megabyte of text a tenth.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol, runtime_checkable

import anyio.to_thread
import msgspec

from lmclient import tokens
from lmclient.core.request import CompletionRequest
from lmclient.profiles.model import ModelProfile
from lmclient.prompts.format import PromptFormat
from lmclient.prompts.special_tokens import token_pattern
from lmclient.providers.base import Provider
from lmclient.providers.http import HttpProvider
from lmclient.providers.llama_server import LlamaServer
from lmclient.providers.text import AUTO, Prompt, WritesPrompts

LLAMA_SERVER = "llama-server"


@runtime_checkable
class HasServer(Protocol):
    """A provider whose server has to be started, or found, before it can be asked."""

    async def serving(self, profile: ModelProfile) -> tuple[HttpProvider, ModelProfile]:
        """Who answers for the profile, and the profile with the URL of the running server."""
        ...


def tokenizer_of(profile: ModelProfile) -> tuple[str, str]:
    """Name and encoding of the tokenizer that the profile names, else of the one that fits its model."""
    name, encoding = tokens.pick(profile.model, profile.provider)
    # "" is lm-lib's `tokenEncoding=none`.
    if profile.token_encoding and (profile.tokenizer or "token_encoding" in profile.model_fields_set):
        encoding = profile.token_encoding
    if profile.tokenizer:
        return profile.tokenizer, encoding
    return (LLAMA_SERVER if profile.prompt_format == AUTO else name), encoding


async def count_text(provider: Provider, profile: ModelProfile, text: str) -> int:
    """The tokens of a text by itself; what looks like a control token in it is text."""
    counted = await _tokenizer(provider, profile)
    if tokens.is_server_tokenizer(counted):
        return await counted.count(text)
    return await anyio.to_thread.run_sync(counted.count, text)


async def count_request(provider: Provider, request: CompletionRequest) -> int:
    """The input tokens of a request."""
    profile = request.profile
    if isinstance(provider, HasServer) and tokenizer_of(profile)[0] == LLAMA_SERVER:
        provider, profile = await provider.serving(profile)
        request = _at(request, profile)
    if isinstance(provider, WritesPrompts) and profile.prompt_format:
        return await _count_prompt(provider, profile, await provider.prompt(request))
    if isinstance(provider, HttpProvider) and tokenizer_of(profile)[0] == LLAMA_SERVER:
        profile = provider.located(profile)
        return await LlamaServer(provider, profile).count_chat(_at(request, profile))
    counted = await _tokenizer(provider, profile)
    tools = request.options.tools
    if tokens.is_server_tokenizer(counted):
        return await tokens.count_messages_on_server(request.conversation, counted, tools)
    return await anyio.to_thread.run_sync(tokens.count_messages, request.conversation, counted, tools)


def count_marked(tokenizer: tokens.Tokenizer, prompt: str, format: PromptFormat) -> int:
    """The tokens of a prompt by a tokenizer that may not know the control tokens of its format."""
    pattern = token_pattern(format.special_tokens)
    pieces = [prompt] if pattern is None else pattern.split(prompt)
    return len(pieces) - 1 + sum(tokenizer.count(piece) for piece in pieces if piece)


async def _count_prompt(provider: Provider, profile: ModelProfile, prompt: Prompt) -> int:
    if isinstance(provider, HttpProvider) and tokenizer_of(profile)[0] == LLAMA_SERVER:
        return await LlamaServer(provider, provider.located(profile)).count_prompt(prompt.text)
    counted = await _tokenizer(provider, profile)
    if tokens.is_server_tokenizer(counted):
        return await counted.count(prompt.text, parse_special=True) + bool(prompt.bos)
    format = prompt.served.format
    return await anyio.to_thread.run_sync(count_marked, counted, prompt.text, format) + bool(prompt.bos)


async def _tokenizer(provider: Provider, profile: ModelProfile) -> tokens.Tokenizer | tokens.ServerTokenizer:
    """The profile's tokenizer, loaded in a worker thread."""
    name, encoding = tokenizer_of(profile)
    if isinstance(provider, HasServer) and name == LLAMA_SERVER:
        provider, profile = await provider.serving(profile)
    url, send = None, None
    if isinstance(provider, HttpProvider):
        server = LlamaServer(provider, provider.located(profile))
        url, send = server.url or None, server.send
    return await anyio.to_thread.run_sync(partial(tokens.get, name, encoding, url=url, send=send))


def _at(request: CompletionRequest, profile: ModelProfile) -> CompletionRequest:
    return request if profile is request.profile else msgspec.structs.replace(request, profile=profile)
