"""Control characters and escape sequences of a model never pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmclient.cli.terminal import LONGEST_SEQUENCE, SafeText, one_line

SEQUENCES = {
    "colour": "\x1b[31m",
    "cursor": "\x1b[2J\x1b[1;1H",
    "8-bit control sequence": "\x9b31m",
    "title": "\x1b]0;title\x07",
    "link": "\x1b]8;;https://example.org\x1b\\",
    "clipboard": "\x1b]52;c;Zm9v\x07",
    "device control": "\x1bPq#0\x1b\\",
    "8-bit string": "\x9dtitle\x9c",
    "reset": "\x1bc",
    "character set": "\x1b(0",
    "backspaces": "\b\b",
    "carriage return": "\r",
    "bell": "\a",
    "delete": "\x7f",
}


def shown(*pieces: str) -> str:
    safe = SafeText()
    return "".join(safe.feed(piece) for piece in pieces) + safe.finish()


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_a_sequence_is_taken_out_whole(sequence):
    assert shown(f"one{sequence}two") == "onetwo"


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_a_sequence_is_taken_out_however_it_is_cut(sequence):
    assert shown(*f"one{sequence}two") == "onetwo"


def test_lines_and_tabs_stay():
    assert shown("a\tb\r\nc\n") == "a\tb\nc\n"


def test_text_in_other_scripts_stays():
    assert shown("Zürich 東京 👩‍🚀") == "Zürich 東京 👩‍🚀"


def test_the_start_of_a_sequence_that_never_ends_is_shown_as_text():
    assert shown("one\x1b]two") == "one]two"


def test_an_endless_sequence_is_not_held_back_for_ever():
    safe = SafeText()
    assert "x" * LONGEST_SEQUENCE in safe.feed("\x1b]" + "x" * LONGEST_SEQUENCE)


@given(st.lists(st.text(alphabet="\x1b\x9b\x9d[]P\\;0m\x07 ab\n\r\x9c")))
def test_no_control_character_passes(pieces):
    assert not {character for character in shown(*pieces) if not character.isprintable()} - {"\n", "\t"}


def test_one_line_is_one_line():
    assert one_line("a\n\x1b[31mb\r\n c") == "a b c"
