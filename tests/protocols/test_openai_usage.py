"""The parts of a usage under the names that servers give them, and what only the total shows."""

from __future__ import annotations

from typing import Any

import pytest

from lmclient import Usage
from lmclient.protocols.openai_usage import read_usage

COUNTS = {"prompt_tokens": 12003, "completion_tokens": 500}
LASTING = {"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 10000}


def read(said: dict[str, Any]) -> Usage:
    """The usage of an object that counts both halves."""
    stated = read_usage(said)
    assert stated is not None
    assert (stated.counts_input, stated.counts_output) == (True, True)
    return stated.usage


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({"cache_creation_input_tokens": 12000, "cache_read_input_tokens": 3}, (3, 12000, 0)),
        ({"prompt_tokens_details": {"cache_creation_input_tokens": 12000}}, (0, 12000, 0)),
        ({"cache_creation_input_tokens": 12000, "cache_creation": LASTING}, (0, 12000, 10000)),
        ({"cache_creation": LASTING}, (0, 12000, 10000)),
        (
            {
                "prompt_tokens_details": {
                    "cache_creation_tokens": 12000,
                    "cache_creation_token_details": LASTING,
                }
            },
            (0, 12000, 10000),
        ),
        (
            {"input_tokens_details": {"cache_read_input_tokens": 3, "cache_creation_input_tokens": 12000}},
            (3, 12000, 0),
        ),
    ],
)
def test_parts_of_the_input_have_several_names(said: dict[str, Any], parts: tuple[int, int, int]) -> None:
    usage = read({**COUNTS, **said})
    assert (usage.cached_input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == parts
    assert usage.input_tokens == 12003


@pytest.mark.parametrize(
    ("total", "output"),
    [
        pytest.param(800, 763, id="reasoning beside the output"),
        pytest.param(567, 530, id="a part of it"),
        pytest.param(900, 530, id="more than both, of what nobody knows"),
        pytest.param(500, 530, id="a total that cannot be"),
        pytest.param(None, 530, id="no total"),
    ],
)
@pytest.mark.parametrize("details", ["completion_tokens_details", "output_tokens_details"])
def test_all_output_is_counted_once(total: int, output: int, details: str) -> None:
    said = {"prompt_tokens": 37, "completion_tokens": 530, "total_tokens": total}
    usage = read({**said, details: {"reasoning_tokens": 233}})
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (37, output, 233)


@pytest.mark.parametrize(("model", "output"), [("gemini-2.5-flash", 2100), ("other", 100)])
def test_thoughts_of_gemini_that_only_the_total_counts_are_not_free(model: str, output: int) -> None:
    said = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 3100}
    stated = read_usage(said, model=model)
    assert stated is not None
    assert (stated.usage.input_tokens, stated.usage.output_tokens) == (1000, output)


@pytest.mark.parametrize("parts", [{"audio_tokens": 375}, {"audio_tokens": 300, "image_tokens": 75}])
def test_input_that_is_no_text_may_stand_beside_the_prompt(parts: dict[str, int]) -> None:
    said = {"prompt_tokens": 3, "completion_tokens": 41, "total_tokens": 419}
    usage = read({**said, "prompt_tokens_details": {"cached_tokens": 0, **parts}})
    assert (usage.input_tokens, usage.output_tokens) == (378, 41)


def test_reasoning_that_is_more_than_the_output_stands_beside_it() -> None:
    said = {"prompt_tokens": 1000, "completion_tokens": 100}
    usage = read({**said, "completion_tokens_details": {"reasoning_tokens": 2000}})
    assert (usage.output_tokens, usage.reasoning_tokens) == (2100, 2000)


@pytest.mark.parametrize(
    ("prompt", "total", "input"),
    [
        pytest.param(3, 12508, 12008, id="both beside the input"),
        pytest.param(8, 12508, 12008, id="only what was written"),
        pytest.param(12008, 12508, 12008, id="parts of it"),
    ],
)
def test_cached_input_is_counted_once(prompt: int, total: int, input: int) -> None:
    """A02: a gateway that passes on Anthropic's exclusive counting."""
    cache = {"cache_creation_input_tokens": 12000, "cache_read_input_tokens": 5}
    usage = read({"prompt_tokens": prompt, "completion_tokens": 500, "total_tokens": total, **cache})
    assert (usage.input_tokens, usage.output_tokens) == (input, 500)
    assert (usage.cached_input_tokens, usage.cache_write_tokens) == (5, 12000)


@pytest.mark.parametrize(
    "said",
    [
        {"input_tokens": "1000", "output_tokens": 500.0},
        {"prompt_tokens": 1000, "total_tokens": 1500},
        {"completion_tokens": 500, "total_tokens": 1500},
    ],
)
def test_counts_have_other_names_and_forms_or_follow_from_the_total(said: dict[str, Any]) -> None:
    usage = read(said)
    assert (usage.input_tokens, usage.output_tokens) == (1000, 500)


@pytest.mark.parametrize("count", [None, -1, True, 0.5, "x", "-1", [], "9" * 5000])
def test_a_count_that_is_none_leaves_its_half_uncounted(count: Any) -> None:
    prompt = read_usage({"prompt_tokens": count, "completion_tokens": 500})
    completion = read_usage({"prompt_tokens": 1000, "completion_tokens": count})
    assert prompt is not None
    assert completion is not None
    assert (prompt.counts_input, prompt.counts_output, prompt.usage.output_tokens) == (False, True, 500)
    assert (completion.counts_input, completion.counts_output) == (True, False)
    assert completion.usage.input_tokens == 1000
    assert read_usage({"prompt_tokens": count, "completion_tokens": count}) is None


def test_reasoning_is_read_where_one_of_two_tables_has_none() -> None:
    tables = {"completion_tokens_details": {"reasoning_tokens": 50}, "output_tokens_details": {}}
    assert read({"prompt_tokens": 1, "completion_tokens": 60, **tables}).reasoning_tokens == 50
