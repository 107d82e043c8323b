"""The tokenizer without data."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmclient.errors import BadRequestError
from lmclient.tokens import get
from lmclient.tokens.fallback import FallbackTokenizer

TEXTS = Path(__file__).parent / "texts"
ANY_STR = st.text(alphabet=st.characters(codec=None, categories=None))


@settings(deadline=None)
@given(st.text() | ANY_STR | st.text(alphabet="\ud800\udc00\x00\x01 aA\n中é😀"))
def test_every_str_survives_the_round_trip(text):
    tokenizer = FallbackTokenizer()

    assert tokenizer.detokenize(tokenizer.tokenize(text)) == text


@settings(deadline=None)
@given(ANY_STR)
def test_count_is_the_number_of_tokens(text):
    tokenizer = FallbackTokenizer()

    assert tokenizer.count(text) == len(tokenizer.tokenize(text))


@pytest.mark.parametrize(
    ("file", "bound"),
    [
        ("english", 0.04),
        ("german", 0.15),
        ("python", 0.10),
        ("c", 0.10),
        ("chinese", 0.15),
        ("japanese", 0.15),
        ("korean", 0.15),
    ],
)
def test_counts_stay_near_those_of_o200k_base(file, bound):
    text = (TEXTS / f"{file}.txt").read_text(encoding="utf-8")

    assert FallbackTokenizer().count(text) == pytest.approx(get("tiktoken").count(text), rel=bound)


def test_ids_are_the_same_in_every_process():
    assert FallbackTokenizer().tokenize("Hi 中") == [0x014869, 0x0120, 0x01E4B8AD]


@pytest.mark.parametrize("token", [0, 1, -1, 0xFF, 0x0201, 0x01FF])
def test_a_number_that_is_no_id_is_refused(token):
    with pytest.raises(BadRequestError, match="is not the id of a token"):
        FallbackTokenizer().detokenize([token])


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["a", " ", "中", "😀", "The ferry left late. "])
def test_a_million_characters_take_bounded_time(sample):
    text = sample * (1_000_000 // len(sample))
    start = time.perf_counter()

    FallbackTokenizer().count(text)

    assert time.perf_counter() - start < 5
