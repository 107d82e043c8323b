"""The tokenizer of a llama.cpp server: the tokens of the very model that it serves.

Wire format: llama.cpp, tools/server/README.md, sections "POST /tokenize" and "POST /detokenize".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from lmclient.errors import ConfigurationError, ProtocolError

_Answer = TypeVar("_Answer", bound=msgspec.Struct)
_API_PATH = re.compile(r"(/v1)?(/chat/completions|/completions|/responses)?/*$")


class Send(Protocol):
    """Sends a JSON body and returns the body of a successful answer; it raises for any other."""

    async def __call__(self, method: str, url: str, body: bytes, /) -> bytes:
        """The answer's body."""
        ...


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Content(msgspec.Struct):
    content: str


class LlamaServerTokenizer:
    """A `ServerTokenizer` on the llama.cpp server at `url`, the URL of a profile.

    `send` carries the requests. Its errors pass through; an answer of another form raises
    `ProtocolError`, a URL without scheme and host `ConfigurationError`.
    """

    name = "llama-server"

    def __init__(self, url: str, send: Send) -> None:
        self.root = server_root(url)
        self._send = send

    async def tokenize(
        self, text: str, *, parse_special: bool = False, add_special: bool = False
    ) -> list[int]:
        """The token ids of `text`; lone surrogates, which JSON cannot carry, count as U+FFFD.

        With `add_special` the server adds what the model wants at the start, such as BOS.
        """
        body = {"content": _encodable(text), "add_special": add_special, "parse_special": parse_special}
        return (await self._post("/tokenize", body, _Tokens)).tokens

    async def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of the token ids."""
        return (await self._post("/detokenize", {"tokens": list(tokens)}, _Content)).content

    async def count(self, text: str, *, parse_special: bool = False, add_special: bool = False) -> int:
        """How many tokens `tokenize` would return."""
        return len(await self.tokenize(text, parse_special=parse_special, add_special=add_special))

    async def _post(self, path: str, body: dict[str, Any], answer: type[_Answer]) -> _Answer:
        parts = urlsplit(self.root)
        url = urlunsplit(parts._replace(path=parts.path + path))
        content = await self._send("POST", url, msgspec.json.encode(body))
        try:
            return msgspec.json.decode(content, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            shown = content[:80].decode("utf-8", "replace")
            raise ProtocolError(
                f"{parts.hostname} answered {path} with {shown!r}: {error}. Is it a llama.cpp server?"
            ) from error


def server_root(url: str) -> str:
    """Where the server's own endpoints stand: `url` without `/v1`, an endpoint and slashes at its end.

    A path before `/v1`, and the query, are kept. Raises `ConfigurationError` if it is no HTTP URL.
    """
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigurationError("The tokenizer 'llama-server' needs the server's http:// or https:// URL.")
    return urlunsplit((parts.scheme, parts.netloc, _API_PATH.sub("", parts.path), parts.query, ""))


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
