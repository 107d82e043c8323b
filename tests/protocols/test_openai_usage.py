"""The parts of a usage under the names that gateways in front of other vendors give them."""

from __future__ import annotations

from typing import Any

import pytest

from lmclient.protocols.openai_usage import read_usage

COUNTS = {"prompt_tokens": 12003, "completion_tokens": 500}
LASTING = {"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 10000}


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({"cache_creation_input_tokens": 12000, "cache_read_input_tokens": 3}, (3, 12000, 0)),
        ({"prompt_tokens_details": {"cache_creation_input_tokens": 12000}}, (0, 12000, 0)),
        ({"cache_creation_input_tokens": 12000, "cache_creation": LASTING}, (0, 12000, 10000)),
        (
            {
                "prompt_tokens_details": {
                    "cache_creation_tokens": 12000,
                    "cache_creation_token_details": LASTING,
                }
            },
            (0, 12000, 10000),
        ),
    ],
)
def test_parts_of_the_input_have_several_names(said: dict[str, Any], parts: tuple[int, int, int]) -> None:
    usage = read_usage({**COUNTS, **said}, {})
    assert usage is not None
    assert (usage.cached_input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == parts
    assert usage.input_tokens == 12003


@pytest.mark.parametrize(
    ("total", "output"),
    [pytest.param(800, 763, id="reasoning beside the output"), pytest.param(567, 530, id="a part of it")],
)
def test_all_output_is_counted_once(total: int, output: int) -> None:
    said = {"prompt_tokens": 37, "completion_tokens": 530, "total_tokens": total}
    usage = read_usage({**said, "completion_tokens_details": {"reasoning_tokens": 233}}, {})
    assert usage is not None
    assert (usage.output_tokens, usage.reasoning_tokens) == (output, 233)
