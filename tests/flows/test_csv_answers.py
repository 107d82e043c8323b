"""What models answer when they are asked for CSV, and the table that is meant."""

from __future__ import annotations

import contextlib
import csv
import io
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmclient.errors import FlowError
from lmclient.flows.csv_reading import read_table

N_A = ["name", "age"]
N_T = ["name", "text"]

ANSWERS = {
    "plain": ("name,age\nAnn,30\nBob,40", N_A, [["Ann", "30"], ["Bob", "40"]]),
    "Windows line ends": ("name,age\r\nAnn,30\r\n", N_A, [["Ann", "30"]]),
    "byte order mark": ("\ufeffname,age\nAnn,30", N_A, [["Ann", "30"]]),
    "semicolons": ("name;age\nAnn;30", N_A, [["Ann", "30"]]),
    "semicolons with decimal commas": ("name;age\nAnn;1,5\nBob;2,5", N_A, [["Ann", "1,5"], ["Bob", "2,5"]]),
    "semicolons with commas in the text": (
        "name;text\nAnn;a, b, c\nBob;d",
        N_T,
        [["Ann", "a, b, c"], ["Bob", "d"]],
    ),
    "tabs": ("name\tage\nAnn\t30", N_A, [["Ann", "30"]]),
    "tabs with empty fields": ("name\tage\nAnn\t\nBob\t40", N_A, [["Ann", ""], ["Bob", "40"]]),
    "pipes": ("name|age\nAnn|30", N_A, [["Ann", "30"]]),
    "Markdown table": (
        "| name | age |\n|---|:---:|\n| Ann | 30 |\n| Bob | |",
        N_A,
        [["Ann", "30"], ["Bob", ""]],
    ),
    "fence": ("```csv\nname,age\nAnn,30\n```", N_A, [["Ann", "30"]]),
    "short row in a fence": ("```csv\nname,age\nAnn\nBob,40\n```", N_A, [["Ann", ""], ["Bob", "40"]]),
    "fence in prose": ("Here you go:\n\n```\nname;age\nAnn;30\n```\n\nDone, as asked.", N_A, [["Ann", "30"]]),
    "fence never closed": ("```csv\nname,age\nAnn,30", N_A, [["Ann", "30"]]),
    "prose before": ("Sure, here is the data:\n\nname,age\nAnn,30", N_A, [["Ann", "30"]]),
    "prose right before": ("Here, as you asked:\nname,age\nAnn,30", N_A, [["Ann", "30"]]),
    "prose without an end": (
        "Here are the rows, as asked\n\nname,age,city\nAnn,3,x",
        [*N_A, "city"],
        [["Ann", "3", "x"]],
    ),
    "prose after": ("name,age\nAnn,30\n\nLet me know, if you need more.", N_A, [["Ann", "30"]]),
    "prose right after": ("name,age\nAnn,30\nHope this helps!", N_A, [["Ann", "30"]]),
    "thoughts before": ("<think>a,b\n1,2</think>\nname,age\nAnn,30", N_A, [["Ann", "30"]]),
    "quotes": ('"name","age"\n"Ann","30"', N_A, [["Ann", "30"]]),
    "quoted separator": ('name,text\nAnn,"Hello, world"', N_T, [["Ann", "Hello, world"]]),
    "quoted line end": ('name,text\nAnn,"one\n\ntwo"\nBob,x', N_T, [["Ann", "one\n\ntwo"], ["Bob", "x"]]),
    "quoted table mark": ('name,text\nAnn,"- a, b; c"', N_T, [["Ann", "- a, b; c"]]),
    "doubled quotes": ('name,text\nAnn,"He said ""hi"" twice"', N_T, [["Ann", 'He said "hi" twice']]),
    "only a quote": ('name,text\nAnn,""""\nBob,""', N_T, [["Ann", '"'], ["Bob", ""]]),
    "escaped quotes": ('name,text\nAnn,"He said \\"hi\\""', N_T, [["Ann", 'He said "hi"']]),
    "quotes within quotes": (
        'name,text\nAnn,"He said "hi" to me"\nBob,x',
        N_T,
        [["Ann", 'He said "hi" to me'], ["Bob", "x"]],
    ),
    "quotes within quotes at the end": (
        'name,text\nAnn,"He said "hi""\nBob,"x"',
        N_T,
        [["Ann", 'He said "hi"'], ["Bob", "x"]],
    ),
    "quotes in an unquoted field": ('name,text\nAnn,the "best" one', N_T, [["Ann", 'the "best" one']]),
    "quote never closed": ('name,text\nAnn,"open\nBob,x', N_T, [["Ann", '"open'], ["Bob", "x"]]),
    "typographic quotes": ("“name”,“text”\n“Ann, B.”,x", N_T, [["Ann, B.", "x"]]),
    "single quotes": (
        "name,text\nAnn,'fine, really'\nBob,'tis ok",
        N_T,
        [["Ann", "fine, really"], ["Bob", "'tis ok"]],
    ),
    "apostrophes": ("name,text\nO'Neil,it's\nBob,x", N_T, [["O'Neil", "it's"], ["Bob", "x"]]),
    "spaces around": ('name , age\nAnn , 30\nBob, "40" ', N_A, [["Ann", "30"], ["Bob", "40"]]),
    "blank lines between": ("name,age\n\nAnn,30\n\nBob,40", N_A, [["Ann", "30"], ["Bob", "40"]]),
    "bold header": ("**name**,**age**\nAnn,30", N_A, [["Ann", "30"]]),
    "trailing separators": ("name,age,\nAnn,30,\nBob,40,", N_A, [["Ann", "30"], ["Bob", "40"]]),
    "too few fields": (
        "name,age,city\nAnn,30\nBob,40,Rome",
        [*N_A, "city"],
        [["Ann", "30", ""], ["Bob", "40", "Rome"]],
    ),
    "unquoted separators in the last column": (
        "name,text\nAnn,tea, coffee\nBob,x",
        N_T,
        [["Ann", "tea, coffee"], ["Bob", "x"]],
    ),
    "a name twice": ("name,name\nAnn,Bob", ["name", "name_2"], [["Ann", "Bob"]]),
    "a column without a name": (",name\n1,Ann\n2,Bob", ["column_1", "name"], [["1", "Ann"], ["2", "Bob"]]),
    "one column": ("name\nAnn\nBob", ["name"], [["Ann"], ["Bob"]]),
    "one column in a fence": ("Here:\n```csv\nname\nAnn B.\n```", ["name"], [["Ann B."]]),
    "unicode": ("naïve,日本\né,語", ["naïve", "日本"], [["é", "語"]]),
}

HOPELESS = [
    "",
    "\n\n",
    "I cannot do that, sorry.",
    "Sorry, no.\nAsk again, please.",
    "name,age",
    "```csv\n```",
    "{}",
    "a b c",
]


@pytest.mark.parametrize(("answer", "header", "rows"), ANSWERS.values(), ids=ANSWERS)
def test_the_table_is_read(answer, header, rows):
    assert read_table(answer) == (header, rows)


@pytest.mark.parametrize("answer", HOPELESS)
def test_what_holds_no_table_is_the_defined_failure(answer):
    with pytest.raises(FlowError):
        read_table(answer)


def test_expected_columns_find_the_header_among_other_tables():
    answer = "a,b\n1,2\n\nAge,Full Name\n30,Ann"
    assert read_table(answer, ["full_name", "age"]) == (["Age", "Full Name"], [["30", "Ann"]])


def test_expected_columns_stand_for_a_missing_header():
    assert read_table("Ann,30\nBob,40", ["name", "age"]) == (N_A, [["Ann", "30"], ["Bob", "40"]])


def test_a_header_of_the_expected_columns_may_have_no_rows():
    assert read_table("name,age", ["name", "age"]) == (N_A, [])


@pytest.mark.parametrize(
    "piece", ['"', '",', '"x,', ",x", "a,b\n", "\n", " ", "|\n", "'", '"" ,', "```\n", ", ", "--,"]
)
def test_hostile_answers_end_in_time(piece):
    began = time.process_time()
    with contextlib.suppress(FlowError):
        read_table("a,b\n" + piece * (100_000 // len(piece)))
    assert time.process_time() - began < 8


_PIECES = st.sampled_from(
    [*",;\t|\"'\n -:`\\ab1.", "```csv\n", "“", "”", '""', "\r\n", "|---|", "name,age\n"]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), st.lists(_PIECES, max_size=60).map("".join)))
def test_no_text_raises_anything_but_the_defined_failure(answer):
    try:
        table = read_table(answer)
    except FlowError:
        return
    assert all(len(row) == len(table.header) for row in table.rows)


_CELL = st.text(st.characters(codec="utf-8", exclude_characters="\r\0`\\"), min_size=1, max_size=12).filter(
    lambda text: text.strip() == text and "</think>" not in text
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_CELL, _CELL), min_size=1, max_size=5))
def test_well_written_csv_is_read_as_it_is(rows):
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("first", "second"), *rows])
    assert read_table(written.getvalue()) == (["first", "second"], [list(row) for row in rows])
