"""Splitting reasoning and text while an answer arrives."""

from __future__ import annotations

import pytest

from lmclient import prompts
from lmclient.core.completion import Chunk
from lmclient.prompts.harmony import HarmonyParser
from lmclient.prompts.reasoning import AnswerParser, TagParser, tag_splitter


def run(parser: AnswerParser, *pieces: str) -> tuple[str, str]:
    chunks = [*map(parser.feed, pieces), parser.finish()]
    return "".join(chunk.text for chunk in chunks), "".join(chunk.reasoning for chunk in chunks)


@pytest.mark.parametrize(
    ("raw", "text", "reasoning"),
    [
        ("<think>a</think>b", "b", "a"),
        (" \n<think>\n a \n</think>\n\n b \n", "b", "a"),
        ("<think></think>b", "b", ""),
        ("<think>a", "", "a"),
        ("just text", "just text", ""),
        ("a <b> c </think> d", "a <b> c </think> d", ""),
        ("</think>b", "b", ""),
        ("<think><think>a</think>b", "b", "a"),
        ("<think>a <think> b</think>c", "c", "a <think> b"),
        ("x <think>a</think> y <think>b</think>z", "x  y z", "a\n\nb"),
        ("", "", ""),
        ("a <thin", "a <thin", ""),
        ("<think>a </thin", "", "a </thin"),
    ],
)
def test_tags_split_an_answer_however_it_is_cut(raw: str, text: str, reasoning: str) -> None:
    assert run(tag_splitter("think"), raw) == (text, reasoning)
    assert run(tag_splitter("think"), *raw) == (text, reasoning)


def test_only_what_may_be_a_marker_is_held_back() -> None:
    parser = tag_splitter("think")
    assert parser.feed("a <") == Chunk("a")
    assert parser.feed("b <thi") == Chunk(" <b")
    assert parser.feed("s> c") == Chunk(" <this> c")


def test_plain_text_passes_at_once() -> None:
    parser = tag_splitter("think")
    assert [parser.feed(piece).text for piece in ("Hel", "lo", " you")] == ["Hel", "lo", " you"]


def test_reasoning_passes_at_once() -> None:
    parser = TagParser("<think>", "</think>", inside=True)
    assert [parser.feed(piece).reasoning for piece in ("Hel", "lo", " you")] == ["Hel", "lo", " you"]


def test_a_marker_in_the_middle_of_the_prompt_does_not_count_as_opened() -> None:
    prompt = prompts.get("qwen3").render("What is <think>?")
    assert prompts.get("qwen3").parse("A tag.", prompt_end=prompt) == Chunk("A tag.")


@pytest.mark.parametrize("name", ["qwen3", "qwen3.5", "deepseek-v3.1", "gemma4"])
@pytest.mark.parametrize("thinking", [True, False])
def test_the_prompt_that_was_sent_decides_where_the_answer_begins(name: str, thinking: bool) -> None:
    format = prompts.get(name)
    prompt = format.render("Hi", thinking=thinking)
    opening, closing = format.reasoning_markers or ("", "")
    opened = prompt.rstrip().endswith(opening)
    answer = format.parse(f"a{closing}b" if opened else "b", prompt_end=prompt)
    assert answer == Chunk("b", "a" if opened else "")


def test_text_of_formats_without_reasoning_keeps_its_whitespace() -> None:
    assert prompts.get("chatml").parse(" a\n<|im_end|>") == Chunk(" a\n")


@pytest.mark.parametrize(
    ("raw", "text", "reasoning"),
    [
        ("no markers at all", "no markers at all", ""),
        ("to be or not", "to be or not", ""),
        ("<|message|>bare", "bare", ""),
        ("<|channel|>commentary<|message|>First I look.<|end|>", "First I look.", ""),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>"
            "<|start|>assistant<|channel|>final<|message|>c <d> e",
            "c <d> e",
            "a\n\nb",
        ),
        ("<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b", "b", "a"),
        ("<|channel|>anal", "", ""),
        ("<|start|>" + "x" * 1200, "x" * 1200, ""),
    ],
)
def test_harmony_channels_split_an_answer_however_it_is_cut(raw: str, text: str, reasoning: str) -> None:
    assert run(HarmonyParser(), raw) == (text, reasoning)
    assert run(HarmonyParser(), *raw) == (text, reasoning)


def test_harmony_message_to_a_function_is_a_tool_call() -> None:
    raw = (
        "<|channel|>analysis<|message|>Ask.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.weather <|constrain|>json<|message|>{"city":"Rome"}<|call|>'
    )
    answer = prompts.get("gpt-oss").parse(raw)
    assert (answer.text, answer.reasoning) == ("", "Ask.")
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("weather", {"city": "Rome"})]


def test_harmony_prompt_may_have_opened_a_channel() -> None:
    prompt = prompts.get("gpt-oss").render("Hi") + "<|channel|>analysis<|message|>"
    assert prompts.get("gpt-oss").parse("Hm.<|end|>", prompt_end=prompt) == Chunk("", "Hm.")
