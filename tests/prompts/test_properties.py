"""What holds for every conversation and every answer."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmclient import prompts
from lmclient.core.completion import Chunk
from lmclient.core.conversation import Conversation, Turn
from lmclient.errors import BadRequestError
from lmclient.prompts.reasoning import AnswerParser, tag_splitter

NAMES = prompts.names()
PIECES = sorted(
    {
        part
        for name in NAMES
        for mark in (*prompts.get(name).special_tokens, *(prompts.get(name).reasoning_markers or ()))
        for part in (mark, mark[:3], mark[3:])
    }
    | {" ", "\n", "a", "<", "[", "final", "to=f", "🙂"}
)
TEXTS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
TURNS = st.builds(
    lambda role, text, reasoning: Turn(role, text, reasoning=reasoning),
    st.sampled_from(["system", "user", "assistant"]),
    TEXTS,
    TEXTS,
)


def run(parser: AnswerParser, pieces: list[str]) -> tuple[str, str, list[str]]:
    chunks: list[Chunk] = [*map(parser.feed, pieces), parser.finish()]
    return (
        "".join(chunk.text for chunk in chunks),
        "".join(chunk.reasoning for chunk in chunks),
        [call.raw_arguments for chunk in chunks for call in chunk.tool_calls],
    )


def cut(text: str, positions: list[int]) -> list[str]:
    bounds = [0, *sorted(position % (len(text) + 1) for position in positions), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(bounds)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(turns=st.lists(TURNS, min_size=1, max_size=6), thinking=st.sampled_from([None, True, False]))
def test_any_conversation_renders_or_is_refused(name: str, turns: list[Turn], thinking: bool | None) -> None:
    with contextlib.suppress(BadRequestError):
        assert prompts.get(name).render(Conversation(turns), thinking=thinking) is not None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_texts_never_change_the_number_of_control_tokens(name: str, texts: list[str]) -> None:
    format = prompts.get(name)
    roles = ["user", "assistant"]
    said = [Turn(roles[number % 2], text) for number, text in enumerate(texts)]
    bare = [Turn(turn.role, "x") for turn in said]
    prompt, harmless = format.render(said), format.render(bare)
    for token in (*format.special_tokens, *format.turn_markers):
        assert prompt.count(token) == harmless.count(token)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(
    raw=TEXTS, positions=st.lists(st.integers(0, 1000), max_size=5), end=st.sampled_from(["", "x", "<think>"])
)
def test_any_cut_of_an_answer_gives_the_same(name: str, raw: str, positions: list[int], end: str) -> None:
    format = prompts.get(name)
    whole = format.parse(raw, prompt_end=end)
    expected = (whole.text, whole.reasoning, [call.raw_arguments for call in whole.tool_calls])
    assert run(format.parser(prompt_end=end), cut(raw, positions)) == expected
    assert run(format.parser(prompt_end=end), list(raw)) == expected


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.sampled_from(["<think>", "</think>", "<", "thi", " ", "\n", "a"]), max_size=12))
def test_any_cut_of_tagged_text_gives_the_same(parts: list[str]) -> None:
    raw = "".join(parts)
    text, reasoning, _ = run(tag_splitter("think"), [raw])
    assert run(tag_splitter("think"), list(raw)) == (text, reasoning, [])
    assert run(tag_splitter("think"), parts) == (text, reasoning, [])
    assert (text, reasoning) == (text.strip(), reasoning.strip())
