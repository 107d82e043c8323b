"""The BPE ranks and special tokens of OpenAI's encodings, from files inside the package.

The rank files are those that OpenAI publishes for tiktoken (MIT licence), gzipped. Pre-tokenizing
patterns and special tokens are facts of the encodings and have to be exactly what the models were
trained with.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from binascii import a2b_base64
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lmclient.errors import ConfigurationError

DATA = Path(__file__).parent / "data"

_WORD_TAIL = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_O200K_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _WORD_TAIL,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _WORD_TAIL,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_HARMONY_NAMED = {
    "<|startoftext|>": 199998,
    "<|endoftext|>": 199999,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
}
_HARMONY_LAST = 201087


@dataclass(frozen=True)
class EncodingFacts:
    """What makes an encoding: its rank file, that file's SHA-256 unpacked, pattern, special tokens."""

    file: str
    sha256: str
    pattern: str
    special_tokens: dict[str, int]


def _harmony_special_tokens() -> dict[str, int]:
    """All ids behind the ranks; those without a name of their own are called reserved.

    `<|endofprompt|>` of o200k_base keeps its id, 200018, beside the reserved name.
    """
    named = set(_HARMONY_NAMED.values())
    reserved = {f"<|reserved_{id}|>": id for id in range(200000, _HARMONY_LAST + 1) if id not in named}
    return {"<|endofprompt|>": 200018, **_HARMONY_NAMED, **reserved}


_CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

ENCODINGS = {
    "cl100k_base": EncodingFacts(
        "cl100k_base.tiktoken.gz",
        _CL100K_SHA256,
        _CL100K_PATTERN,
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": EncodingFacts(
        "o200k_base.tiktoken.gz",
        _O200K_SHA256,
        _O200K_PATTERN,
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
    "o200k_harmony": EncodingFacts(
        "o200k_base.tiktoken.gz", _O200K_SHA256, _O200K_PATTERN, _harmony_special_tokens()
    ),
}


def read_ranks(path: Path, sha256: str) -> dict[bytes, int]:
    """The ranks in a gzipped rank file: each token's bytes and its id.

    Raises `ConfigurationError` if the file is missing, damaged, or not the published one.
    """
    reinstall = "Install lmclient again, or use the tokenizer 'fallback', which needs no file."
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigurationError(
            f"The rank file {path} cannot be read ({type(error).__name__}: {error}). {reinstall}"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ConfigurationError(
            f"The rank file {path} is not the published one: "
            f"its SHA-256 is {found}, not {sha256}. {reinstall}"
        )
    # Each line is "<base64> <rank>". With the checksum right the ranks are known to count up from
    # 0, so parsing the 200,000 numbers, half of the time, can be left out.
    tokens = map(a2b_base64, content.split()[::2])
    return {token: rank for rank, token in enumerate(tokens)}


@cache
def shipped_ranks(file: str, sha256: str) -> dict[bytes, int]:
    """The ranks of a file of this package, read once and shared by the encodings built on it."""
    return read_ranks(DATA / file, sha256)
