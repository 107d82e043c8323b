"""What a call used, in tokens."""

from __future__ import annotations

from typing import Any

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens of one completion.

    `input_tokens` counts all input, cached reads and cache writes included; `output_tokens` all
    output, reasoning included. The others are parts of those two (`cache_write_1h_tokens` is a
    part of `cache_write_tokens`). `details` keeps what else the provider counted, as it said it.
    `estimated` is True where the provider did not count a part of it and the text was counted instead.
    """

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    details: dict[str, Any] = {}
