"""OpenAI's tokenizers: tiktoken on the rank files shipped with this package.

tiktoken's own registry is not used: it would download the files.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import tiktoken

from lmclient.errors import BadRequestError, ConfigurationError
from lmclient.tokens.ranks import ENCODINGS, shipped_ranks

# tiktoken's regular expression engine aborts with a panic on a run of white space somewhere above
# 900,000 characters. A text is therefore cut inside runs that fill a whole block of this size; the
# count then differs from an uncut one by a few tokens, had it been possible.
_BLANK_BLOCK = 65_536

_loaded: dict[str, BpeTokenizer] = {}
_loading = threading.Lock()


class BpeTokenizer:
    """A `Tokenizer` with one of OpenAI's encodings; get it from `lmclient.tokens.get`.

    Lone surrogates, which UTF-8 cannot carry, count as U+FFFD; all other text survives
    `detokenize(tokenize(text))` unchanged.
    """

    def __init__(self, encoding: str) -> None:
        facts = ENCODINGS[encoding]
        self.name = "tiktoken"
        self.encoding = encoding
        self._bpe = tiktoken.Encoding(
            encoding,
            pat_str=facts.pattern,
            mergeable_ranks=shipped_ranks(facts.file, facts.sha256),
            special_tokens=facts.special_tokens,
        )

    def __repr__(self) -> str:
        return f"BpeTokenizer({self.encoding!r})"

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The token ids of `text`; special tokens are text unless `parse_special`."""
        pieces = _pieces(text)
        tokens = self._encode(pieces[0], parse_special)
        for piece in pieces[1:]:
            tokens.extend(self._encode(piece, parse_special))
        return tokens

    def _encode(self, piece: str, parse_special: bool) -> list[int]:
        if parse_special:
            return self._bpe.encode(piece, allowed_special="all")
        return self._bpe.encode_ordinary(piece)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of the ids; bytes that are not UTF-8 (half a character) become U+FFFD.

        Raises `BadRequestError` for an id that the encoding does not have.
        """
        try:
            return self._bpe.decode(tokens)
        except (KeyError, OverflowError) as error:
            raise BadRequestError(
                f"A token id does not exist in the encoding {self.encoding}: {error}."
            ) from error

    def count(self, text: str, *, parse_special: bool = False) -> int:
        """The number of tokens of `text`."""
        return len(self.tokenize(text, parse_special=parse_special))


def load(encoding: str) -> BpeTokenizer:
    """The tokenizer of an encoding, loaded once per process (about half a second for o200k_base).

    Raises `ConfigurationError` for an unknown encoding or a damaged rank file.
    """
    if encoding not in ENCODINGS:
        raise ConfigurationError(
            f"There is no token encoding {encoding!r}; known are {', '.join(sorted(ENCODINGS))}."
        )
    tokenizer = _loaded.get(encoding)
    if tokenizer is None:
        with _loading:
            tokenizer = _loaded.get(encoding)
            if tokenizer is None:
                tokenizer = _loaded[encoding] = BpeTokenizer(encoding)
    return tokenizer


def _pieces(text: str) -> list[str]:
    """The text, cut before and after each aligned block that is nothing but white space."""
    pieces = []
    start = 0
    for block in range(0, len(text) - _BLANK_BLOCK + 1, _BLANK_BLOCK):
        end = block + _BLANK_BLOCK
        # isspace() returns at the first other character, so that this loop costs nothing.
        if text[block:end].isspace():
            pieces += [text[start:block], text[block:end]]
            start = end
    return [*pieces, text[start:]]
