"""What models answer when they are asked for JSON, and the value that is meant."""

from __future__ import annotations

import contextlib
import json
import time

import json_repair
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmclient.errors import FlowError
from lmclient.flows.json_finding import json_values

WRAPPED = {
    "bare": ('{"a": 1}', {"a": 1}),
    "white space around": ('\n\n  {"a": 1}\n', {"a": 1}),
    "byte order mark": ('\ufeff{"a": 1}', {"a": 1}),
    "json fence": ('```json\n{"a": 1}\n```', {"a": 1}),
    "fence without language": ('```\n{"a": 1}\n```', {"a": 1}),
    "fence in one line": ('```json {"a": 1} ```', {"a": 1}),
    "fence never closed": ('```json\n{"a": 1}', {"a": 1}),
    "closing fence only": ('{"a": 1}\n```', {"a": 1}),
    "tilde fence": ('~~~json\n{"a": 1}\n~~~', {"a": 1}),
    "prose around": ('Sure! Here it is: {"a": 1} I hope this helps.', {"a": 1}),
    "prose and fence": ('Here is the JSON:\n\n```json\n{"a": 1}\n```\n\nNote {b}.', {"a": 1}),
    "footnote before": ('As shown in [1]:\n```json\n{"a": 1}\n```', {"a": 1}),
    "footnote before bare JSON": ('As shown in [1] and [2], {"a": 1}', {"a": 1}),
    "braces in prose": ('Use {name} for it: {"a": 1}', {"a": 1}),
    "format repeated before the fence": ('As {"a": 0} says:\n```json\n{"a": 1}\n```', {"a": 1}),
    "list marks in prose": ('[x] done\n[ ] open\n{"a": 1}', {"a": 1}),
    "fence inside a string": (
        '{"code": "```python\\nprint(1)\\n```", "a": 1}',
        {"code": "```python\nprint(1)\n```", "a": 1},
    ),
    "fenced, with a fence inside, broken": (
        '```json\n{"code": "```py\\nx\\n```", "a": 1,}\n```',
        {"code": "```py\nx\n```", "a": 1},
    ),
    "thoughts before": ('<think>maybe {"a": 0}</think>\n{"a": 1}', {"a": 1}),
    "tags around": ('<json>{"a": 1}</json>', {"a": 1}),
    "assignment": ('result = {"a": 1};', {"a": 1}),
    "function call": ('answer({"a": 1})', {"a": 1}),
    "JSON in a string": ('"{\\"a\\": 1}"', {"a": 1}),
    "escaped as in a string": ('{\\"a\\": \\"b\\"}', {"a": "b"}),
    "without braces": ('"a": 1, "b": [2, 3]', {"a": 1, "b": [2, 3]}),
    "without the first brace": ('"a": 1, "b": 2}', {"a": 1, "b": 2}),
    "lines of objects": ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
    "objects with commas between": ('{"a": 1},\n{"a": 2}', [{"a": 1}, {"a": 2}]),
    "two answers": ('Either {"a": 1} or maybe {"a": 2}', {"a": 1}),
    "enumerated objects": ('1. {"a": 1}\n2. {"a": 2}', [{"a": 1}, {"a": 2}]),
    "array": ("[1, 2]", [1, 2]),
    "array in prose": ('The names are ["x", "y"].', ["x", "y"]),
    "doubled braces": ('{{"a": 1}}', {"a": 1}),
    "one brace too many": ('{"a": 1}}', {"a": 1}),
    "HTML entities": ("{&quot;a&quot;: &quot;b&quot;}", {"a": "b"}),
    "prose after an unclosed fence": ("```json\n{'a': 1,}\nThat is all!", {"a": 1}),
}

BROKEN = {
    "names without quotes or spaces": ('{a:1,b:"x",c:{d:2,e:3}}', {"a": 1, "b": "x", "c": {"d": 2, "e": 3}}),
    "name of two words without quotes": ('{first name: "x", age: 3}', {"first name": "x", "age": 3}),
    "missing quote and comma at a line end": (
        '{"a": "one\n  "b": "two",\n  "c": 3}',
        {"a": "one", "b": "two", "c": 3},
    ),
    "missing quote at a line end": ('{"a": "one,\n  "b": "two"}', {"a": "one", "b": "two"}),
    "missing quote of an item": ('{"a": ["x, "y", "z"], "n": 1}', {"a": ["x", "y", "z"], "n": 1}),
    "missing quote of the last item": ('{"a": ["x", "y], "n": 1}', {"a": ["x", "y"], "n": 1}),
    "semicolons in an array": ('{"a": ["x"; "y"]}', {"a": ["x", "y"]}),
    "capital literals": ('{"a": TRUE, "b": FALSE, "c": NULL}', {"a": True, "b": False, "c": None}),
    "escaped line ends outside of strings": ('{"a": 1,\\n"b": "x"}', {"a": 1, "b": "x"}),
    "trailing comma": ('{"a": 1,}', {"a": 1}),
    "trailing commas": ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
    "doubled comma": ('{"a": 1,, "b": [1,,2]}', {"a": 1, "b": [1, 2]}),
    "missing comma": ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    "missing comma at a line end": ('{"a": "x"\n"b": "y"}', {"a": "x", "b": "y"}),
    "missing commas in an array": ('{"a": ["x" "y" "z"]}', {"a": ["x", "y", "z"]}),
    "missing comma between objects": ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}]),
    "semicolons": ('{"a": 1; "b": 2}', {"a": 1, "b": 2}),
    "equals signs": ('{"a" = 1, "b" => "c"}', {"a": 1, "b": "c"}),
    "full-width punctuation": ('{"a"：1，"b"：2}', {"a": 1, "b": 2}),
    "single quotes": ("{'a': 'b'}", {"a": "b"}),
    "single quotes with an apostrophe": ("{'a': 'it's fine', 'b': 1}", {"a": "it's fine", "b": 1}),
    "single quotes, escaped": (r"{'a': 'it\'s'}", {"a": "it's"}),
    "mixed quotes": ("{'a': \"it's\", 'b': 'say \"hi\"'}", {"a": "it's", "b": 'say "hi"'}),
    "escaped apostrophe": (r'{"a": "it\'s"}', {"a": "it's"}),
    "typographic quotes": ("{“a”: “b”}", {"a": "b"}),
    "typographic single quotes": ("{‘a’: ‘b’}", {"a": "b"}),
    "backticks": ('{"a": `b`, "c": 1}', {"a": "b", "c": 1}),
    "triple quotes": ('{"a": """x "y" z""", "b": 1}', {"a": 'x "y" z', "b": 1}),
    "joined strings": ('{"a": "x" + "y"}', {"a": "xy"}),
    "unquoted keys": ('{a: 1, b_c: "x"}', {"a": 1, "b_c": "x"}),
    "unquoted text": ('{"a": hello world, "b": 2}', {"a": "hello world", "b": 2}),
    "line comment": ('{"a": 1, // one\n"b": 2}', {"a": 1, "b": 2}),
    "line comment with an apostrophe": ('{"a": 1, // don\'t\n"b": 2}', {"a": 1, "b": 2}),
    "hash comment": ('{"a": 1, # one\n"b": 2}', {"a": 1, "b": 2}),
    "block comment": ('{"a": /* one */ 1, "b": 2}', {"a": 1, "b": 2}),
    "comment after the last": ('{"a": "x" // that is it\n}', {"a": "x"}),
    "URL is no comment": ('{"a": "http://x.y/z", "b": 1,}', {"a": "http://x.y/z", "b": 1}),
    "Python literals": ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
    "Python tuple": ('{"a": (1, 2)}', {"a": [1, 2]}),
    "JavaScript literals": ('{"a": undefined, "b": NaN}', {"a": None, "b": None}),
    "NaN and Infinity": ('{"a": NaN, "b": -Infinity}', {"a": None, "b": None}),
    "ellipsis in an array": ('{"a": [1, 2, ...]}', {"a": [1, 2]}),
    "ellipsis in an object": ('{"a": 1, ...}', {"a": 1}),
    "ellipsis as a value": ('{"a": ..., "b": 1}', {"a": None, "b": 1}),
    "ellipsis as a text": ('{"a": "...", "b": 1,}', {"a": "...", "b": 1}),
    "missing value": ('{"a": , "b": 2}', {"a": None, "b": 2}),
    "numbers of other notations": (
        '{"a": .5, "b": +1, "c": 1., "d": 0x10, "e": 1_000}',
        {"a": 0.5, "b": 1, "c": 1.0, "d": 16, "e": 1000},
    ),
    "thousands": ('{"a": 1,234, "b": 1,234,567.5}', {"a": 1234, "b": 1234567.5}),
    "amounts with units": (
        '{"a": 50%, "b": $5, "c": 12 km}',
        {"a": "50%", "b": "$5", "c": "12 km"},
    ),
    "date": ('{"a": 2024-01-05, "b": 1}', {"a": "2024-01-05", "b": 1}),
    "line end in a string": ('{"a": "x\ny"}', {"a": "x\ny"}),
    "tab in a string": ('{"a": "x\ty"}', {"a": "x\ty"}),
    "line end and trailing comma": ('{"a": "x\n\ny",}', {"a": "x\n\ny"}),
    "wrong escape": (r'{"a": "\d+\."}', {"a": r"\d+\."}),
    "quotes in a string": ('{"a": "He said "hello" to me"}', {"a": 'He said "hello" to me'}),
    "quotes with a comma": (
        '{"a": "He said "hi", then left", "b": 1}',
        {"a": 'He said "hi", then left', "b": 1},
    ),
    "quotes at the end": ('{"a": "called "Bob"", "b": 1}', {"a": 'called "Bob"', "b": 1}),
    "quotes at the beginning": ('{"a": ""Bob" is here", "b": 1}', {"a": '"Bob" is here', "b": 1}),
    "quotes of code": ('{"a": "print("x")", "b": 1}', {"a": 'print("x")', "b": 1}),
    "quotes of HTML": ('{"a": "<a href="u">z</a>"}', {"a": '<a href="u">z</a>'}),
    "missing quote at the end": ('{"a": "b', {"a": "b"}),
    "missing quote and bracket": ('{"a": ["b", "c', {"a": ["b", "c"]}),
    "missing brace": ('{"a": {"b": 1, "c": 2}', {"a": {"b": 1, "c": 2}}),
    "missing bracket": ('{"a": [1, 2}', {"a": [1, 2]}),
    "missing bracket in the middle": ('{"a": [1, 2, "b": 3}', {"a": [1, 2], "b": 3}),
    "missing brackets of objects": ('{"a": [{"b": 1}, {"b": 2}', {"a": [{"b": 1}, {"b": 2}]}),
    "missing brace in an array": ('[{"a": 1}, {"a": 2]', [{"a": 1}, {"a": 2}]),
    "wrong bracket": ('{"a": "b"]', {"a": "b"}),
    "cut array of objects": ('[{"a": 1}, {"b":', [{"a": 1}, {"b": None}]),
    "cut array of arrays": ("[[1, 2], [3, 4", [[1, 2], [3, 4]]),
    "bare URL and time": (
        '{"a": https://x.y/z, "b": 10:30, "c": 1}',
        {"a": "https://x.y/z", "b": "10:30", "c": 1},
    ),
    "bare colour": ('{"a": #fff, "b": 1}', {"a": "#fff", "b": 1}),
    "amounts in an array": ('{"a": [50%, 12 km, 3]}', {"a": ["50%", "12 km", 3]}),
    "leading comma": ('{, "a": [, 1]}', {"a": [1]}),
    "Markdown escapes": ('\\{"a\\_b": "c\\_d"\\}', {"a_b": "c_d"}),
    "Windows path": ('{"a": "C:\\Users\\bob",}', {"a": "C:\\Users\\bob"}),
    "no-break space in a string": ('{"a": "1\u00a0km",}', {"a": "1\u00a0km"}),
    "cut in a key": ('{"a": "b", "c', {"a": "b"}),
    "cut after a colon": ('{"a": "b", "c":', {"a": "b", "c": None}),
    "cut in a literal": ('{"a": "b", "c": tru', {"a": "b", "c": True}),
    "cut in an escape": ('{"a": "x\\u00', {"a": "x"}),
    "cut after a backslash": ('{"a": "x\\', {"a": "x"}),
    "cut after a comma": ('{"a": 1, "b": [1,', {"a": 1, "b": [1]}),
    "half a surrogate pair": ('{"a": "x\\ud83d"}', {"a": "x\ufffd"}),
    "no-break spaces": ('{\u00a0"a":\u00a01}', {"a": 1}),
    "key twice": ('{"a": 1, "a": 2}', {"a": 2}),
    "remark after a value": ('{"a": "x" (sic), "b": 1}', {"a": "x", "b": 1}),
    "several at once": (
        "```json\n{\n  'title': 'The \"Best\" Book', // sic\n  tags: ['x', 'y',],\n  'ok': True,\n}\n```",
        {"title": 'The "Best" Book', "tags": ["x", "y"], "ok": True},
    ),
}

HOPELESS = [
    "",
    "   ",
    "I cannot do that.",
    "42",
    '"text"',
    "true",
    "{",
    "[",
    "{}}{",
    "}{",
    "{name}",
    "```json\n```",
    "see [x]",
]

HOSTILE = [
    "[",
    "{",
    '{"a":',
    '[{"a":',
    "[1] ",
    '"',
    "'",
    '{"a": "x" ',
    "```json\n{",
    "\n",
    " ",
    "{(",
    "“",
    '{"x": [1] ',
    "\\n",
    '"a, ',
    ", a b c d",
    '"x\n"y',
]


@pytest.mark.parametrize(("answer", "meant"), WRAPPED.values(), ids=WRAPPED)
def test_json_is_found(answer, meant):
    assert json_values(answer)[0] == meant


@pytest.mark.parametrize(("answer", "meant"), BROKEN.values(), ids=BROKEN)
def test_json_is_repaired(answer, meant):
    assert json_values(answer)[0] == meant


@pytest.mark.parametrize("name", [name for name in BROKEN if not name.startswith(("cut", "missing quote"))])
def test_json_is_repaired_in_prose(name):
    answer, meant = BROKEN[name]
    assert json_values(f"Here is what I found:\n\n{answer}")[0] == meant


@pytest.mark.parametrize("name", BROKEN)
def test_json_is_repaired_in_a_fence(name):
    answer, meant = BROKEN[name]
    assert json_values(answer if "```" in answer else f"It is:\n```json\n{answer}\n```\nDone.")[0] == meant


@pytest.mark.parametrize("answer", HOPELESS)
def test_what_holds_no_json_is_the_defined_failure(answer):
    with pytest.raises(FlowError):
        json_values(answer)


def test_exact_reading_does_not_take_a_part_of_a_broken_value():
    with pytest.raises(FlowError):
        json_values('{"a": [{"b": 1}, {"b": 2}, {"b"', exact=True)


def test_a_failure_of_the_repair_library_is_the_defined_failure(monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(json_repair, "repair_json", fail)
    with pytest.raises(FlowError):
        json_values("{'a' 'b' 'c': [}")


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_answers_end_in_time(piece):
    began = time.process_time()
    with contextlib.suppress(FlowError):
        json_values('{"x": ' + piece * (100_000 // len(piece)))
    assert time.process_time() - began < 8


_PIECES = st.sampled_from(
    [
        *"{}[]\",:'` \n\\/#*()=+-.1a",
        "```json\n",
        "```",
        "“",
        "”",
        "true",
        "None",
        "//",
        "/*",
        '"a": ',
        "{'b': ",
        "\\u00",
        "\ud83d",
        "\0",
    ]
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), st.lists(_PIECES, max_size=60).map("".join)))
def test_no_text_raises_anything_but_the_defined_failure(answer):
    try:
        values = json_values(answer)
    except FlowError:
        return
    assert values


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=8), _JSON, min_size=1, max_size=4), st.booleans())
def test_valid_json_stays_as_it_is(value, ascii_only):
    answer = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    assert json_values(answer) == [value]
