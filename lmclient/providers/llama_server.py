"""What a llama.cpp server tells beside completions: its model's template and its tokens.

https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md, "GET /props",
"POST /apply-template" and "POST /tokenize". They stand at the server's root, also where the profile's
URL ends in /v1.
"""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest
from lmclient.errors import NotFoundError, ProfileError, ProtocolError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.base import decode_json
from lmclient.protocols.endpoints import request_headers
from lmclient.protocols.openai_chat import encode_body
from lmclient.protocols.openai_text import ServedFormat
from lmclient.providers.dialects import dialect_for
from lmclient.providers.exchange import placed
from lmclient.providers.http import HttpProvider
from lmclient.tokens.llama_server import LlamaServerTokenizer, server_root

T = TypeVar("T")


class _Props(msgspec.Struct):
    chat_template: str = ""
    bos_token: str = ""
    eos_token: str = ""


class _Applied(msgspec.Struct):
    prompt: str


class LlamaServer:
    """The llama.cpp server of a profile, reached as the profile's completions are.

    Raises what a completion raises, and `ProtocolError` for answers of another kind of server.
    """

    def __init__(self, provider: HttpProvider, profile: ModelProfile) -> None:
        self._provider = provider
        self._profile = profile
        dialect = dialect_for(profile.provider, profile.url)
        self._headers = request_headers(profile, dialect)
        self.url = profile.url or dialect.url

    async def send(self, method: str, url: str, body: bytes = b"") -> bytes:
        """The body of the answer to a request to this server."""
        http = HttpRequest(
            method=method,
            url=url,
            headers=self._headers,
            body=body,
            connect_timeout=self._profile.timeouts.connect,
        )
        return await self._provider.fetch(self._profile, http)

    @property
    def tokenizer(self) -> LlamaServerTokenizer:
        """The tokenizer of its model."""
        return LlamaServerTokenizer(self.url, self.send)

    async def format(self) -> ServedFormat:
        """The prompt format of the model's own template.

        Raises `ProfileError` if the server reports none.
        """
        from lmclient.prompts import from_template

        name = self._profile.name
        try:
            content = await self.send("GET", self._at("/props"))
        except NotFoundError as error:
            raise _no_template(name, "it has no /props, so it is not llama.cpp") from error
        props = self._decoded(content, _Props, "properties")
        if not props.chat_template:
            raise _no_template(name, "it reports no chat template")
        template = from_template(props.chat_template, props.bos_token, props.eos_token, name=f"auto ({name})")
        # A model may have a BOS token and yet not want it in front; SmolLM2's is `<|im_start|>`.
        return ServedFormat(template, adds_bos=await self.tokenizer.count("", add_special=True) > 0)

    async def count_prompt(self, prompt: str) -> int:
        """The tokens of a prompt as the server reads it, with what it puts in front."""
        return await self.tokenizer.count(prompt, parse_special=True, add_special=True)

    async def count_chat(self, request: CompletionRequest) -> int:
        """The tokens of a chat request: the template's prompt of its messages and tools."""
        body = encode_body(request, dialect_for(self._profile.provider, self.url))
        content = await self.send("POST", self._at("/apply-template"), msgspec.json.encode(body))
        return await self.count_prompt(self._decoded(content, _Applied, "a prompt").prompt)

    def _decoded(self, content: bytes, type: type[T], what: str) -> T:
        try:
            return decode_json(msgspec.json.Decoder(type), content, what)
        except ProtocolError as error:
            placed(error, self._profile)
            raise

    def _at(self, path: str) -> str:
        parts = urlsplit(server_root(self.url))
        return urlunsplit(parts._replace(path=parts.path + path))


def _no_template(profile: str, reason: str) -> ProfileError:
    from lmclient import prompts

    known = ", ".join(prompts.names())
    return ProfileError(
        f'Profile {profile!r}: prompt_format is "auto", but the server tells no template: {reason}; '
        f"expected one of {known}, or the path of a .jinja file.",
        key="prompt_format",
        expected="a prompt format",
    )
