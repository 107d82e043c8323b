"""Stop strings that a server lets through are cut."""

from __future__ import annotations

import pytest

from lmclient import prompts
from lmclient.prompts.stops import StopCutter


def cut(stops: list[str], *pieces: str) -> str:
    cutter = StopCutter(stops)
    return "".join([*map(cutter.feed, pieces), cutter.finish()])


@pytest.mark.parametrize(
    ("stops", "text", "left"),
    [
        (["<|im_end|>"], "a<|im_end|>b", "a"),
        (["<|im_end|>"], "a<|im_en", "a<|im_en"),
        (["<|im_end|>"], "a <b> < c", "a <b> < c"),
        (["aab"], "aaab", "a"),
        (["bc", "abcd"], "abcd", "a"),
        (["c", "abc"], "xabc", "x"),
        (["USER:", "</s>"], "Hi USER", "Hi USER"),
        ([], "abc", "abc"),
        ([""], "abc", "abc"),
    ],
)
def test_text_ends_before_the_stop_string_however_it_is_cut(stops: list[str], text: str, left: str) -> None:
    assert cut(stops, text) == left
    assert cut(stops, *text) == left


def test_nothing_passes_once_stopped() -> None:
    cutter = StopCutter(["END"])
    assert cutter.feed("a E") == "a "
    assert not cutter.stopped
    assert cutter.feed("ND b") == ""
    assert cutter.stopped
    assert cutter.feed("c") == ""
    assert cutter.finish() == ""


@pytest.mark.parametrize("name", prompts.names())
def test_parser_of_every_format_cuts_each_of_its_stop_strings(name: str) -> None:
    format = prompts.get(name)
    prompt_end = "" if not format.opens_reasoning else "x"
    for stop in format.stop:
        for at in range(len(stop)):
            parser = format.parser(prompt_end=prompt_end)
            pieces = [parser.feed("Hello" + stop[:at]), parser.feed(stop[at:] + "rest"), parser.finish()]
            assert "".join(piece.text for piece in pieces) == "Hello"
