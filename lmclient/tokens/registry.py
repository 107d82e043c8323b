"""Tokenizers by name: the built-in ones, registered ones, and those of installed packages."""

from __future__ import annotations

import threading
from importlib.metadata import entry_points
from typing import Literal, Protocol, overload

from lmclient.errors import ConfigurationError
from lmclient.tokens.llama_server import Send
from lmclient.tokens.tokenizer import ServerTokenizer, Tokenizer

ENTRY_POINTS = "lmclient.tokenizers"


class TokenizerFactory(Protocol):
    """Makes a tokenizer. `encoding` and `url` are those of the profile; `send` reaches the server."""

    def __call__(self, *, encoding: str, url: str | None, send: Send | None) -> Tokenizer | ServerTokenizer:
        """The tokenizer. It may be asked for several times; what is heavy should be kept."""
        ...


def _tiktoken(*, encoding: str, url: str | None, send: Send | None) -> Tokenizer:
    from lmclient.tokens.bpe import load

    return load(encoding)


def _fallback(*, encoding: str, url: str | None, send: Send | None) -> Tokenizer:
    from lmclient.tokens.fallback import FallbackTokenizer

    return FallbackTokenizer()


def _llama_server(*, encoding: str, url: str | None, send: Send | None) -> ServerTokenizer:
    from lmclient.tokens.llama_server import LlamaServerTokenizer

    if url is None or send is None:
        raise ConfigurationError(
            "The tokenizer 'llama-server' asks a server: it needs a url and a way to send to it."
        )
    return LlamaServerTokenizer(url, send)


_BUILT_IN: dict[str, TokenizerFactory] = {
    "tiktoken": _tiktoken,
    "llama-server": _llama_server,
    "fallback": _fallback,
}
_registered: dict[str, TokenizerFactory] = {}
_installed: dict[str, TokenizerFactory] = {}
_lock = threading.Lock()


def register_tokenizer(name: str, factory: TokenizerFactory) -> None:
    """Makes `factory` the tokenizer `name`, also in place of one that has this name already."""
    with _lock:
        _registered[name] = factory


def names() -> list[str]:
    """The names that `get` knows, sorted, those of installed packages included."""
    return sorted({*_BUILT_IN, *_registered, *(entry.name for entry in entry_points(group=ENTRY_POINTS))})


@overload
def get(
    name: Literal["tiktoken", "fallback"],
    encoding: str = "o200k_base",
    *,
    url: str | None = None,
    send: Send | None = None,
) -> Tokenizer: ...


@overload
def get(
    name: Literal["llama-server"],
    encoding: str = "o200k_base",
    *,
    url: str | None = None,
    send: Send | None = None,
) -> ServerTokenizer: ...


@overload
def get(
    name: str, encoding: str = "o200k_base", *, url: str | None = None, send: Send | None = None
) -> Tokenizer | ServerTokenizer: ...


def get(
    name: str, encoding: str = "o200k_base", *, url: str | None = None, send: Send | None = None
) -> Tokenizer | ServerTokenizer:
    """The tokenizer of that name.

    `encoding` matters to "tiktoken", `url` and `send` to "llama-server". Raises
    `ConfigurationError` if there is none of that name, or it lacks what it needs.
    """
    return _factory(name)(encoding=encoding, url=url, send=send)


def _factory(name: str) -> TokenizerFactory:
    factory = _registered.get(name) or _BUILT_IN.get(name) or _installed.get(name)
    if factory is None:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            with _lock:
                factory = _installed[name] = entry.load()
    if factory is None:
        raise ConfigurationError(f"There is no tokenizer {name!r}; known are {', '.join(names())}.")
    return factory
