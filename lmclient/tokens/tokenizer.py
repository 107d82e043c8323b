"""What a tokenizer is: text to token ids, and back."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class Tokenizer(Protocol):
    """A tokenizer inside this process. Its methods may be called from several threads."""

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The token ids of `text`.

        What looks like a special token (`<|im_end|>`) is ordinary text, as a user may have written
        it; with `parse_special` it becomes that one token, as in a rendered prompt.
        """
        ...

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of the token ids. Raises `BadRequestError` for an id that does not exist."""
        ...

    def count(self, text: str, *, parse_special: bool = False) -> int:
        """How many tokens `tokenize` would return."""
        ...


class ServerTokenizer(Protocol):
    """A tokenizer that asks a server: the methods of `Tokenizer`, to be awaited.

    They raise whatever the caller's way of sending raises, and `ProtocolError` for an answer that
    is not understood.
    """

    async def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The token ids of `text`."""
        ...

    async def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of the token ids."""
        ...

    async def count(self, text: str, *, parse_special: bool = False) -> int:
        """How many tokens `tokenize` would return."""
        ...


def is_server_tokenizer(tokenizer: Tokenizer | ServerTokenizer) -> TypeIs[ServerTokenizer]:
    """Whether the tokenizer's methods have to be awaited."""
    return inspect.iscoroutinefunction(tokenizer.count)


async def count_tokens(
    tokenizer: Tokenizer | ServerTokenizer, text: str, *, parse_special: bool = False
) -> int:
    """The number of tokens of `text`, whichever kind the tokenizer is."""
    if is_server_tokenizer(tokenizer):
        return await tokenizer.count(text, parse_special=parse_special)
    return tokenizer.count(text, parse_special=parse_special)
