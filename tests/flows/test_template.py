"""What placeholders become."""

import json

import pytest

from lmclient import FlowError
from lmclient.flows import AgentContext
from lmclient.flows.template import expand


def make(**values):
    context = AgentContext()
    for key, value in values.items():
        if isinstance(value, list):
            context.set_all(key, value)
        else:
            context.set(key, value)
    return context


def texts(template, **values):
    return expand(template, make(**values), "A").texts


def test_values_are_joined_by_a_blank_line():
    assert texts("<{{x}}>", x=["a", "b"]) == ["<a\n\nb>"]


@pytest.mark.parametrize("value", [{"a": [1, None]}, 5, "text", True, None, "ünï"])
def test_a_single_value_as_json(value):
    (text,) = texts("{{{x}}}", x=value)
    assert json.loads(text) == value


def test_a_list_as_json():
    assert json.loads(texts("{{{x}}}", x=["a", 1])[0]) == ["a", 1]


def test_json_is_not_escaped():
    assert texts("{{{x}}}", x="ü<&>") == ['"ü<&>"']


def test_each_element_of_a_list_is_a_branch():
    assert texts("Item [[x]]!", x=["a", "b", 3]) == ["Item a!", "Item b!", "Item 3!"]


def test_a_hidden_key_branches_without_text():
    prompt = expand("Item [[x]][[y|hidden]].", make(x=["a", "b"], y=[1, 2]), "A")
    assert list(prompt.texts) == ["Item a.", "Item b."]
    assert prompt.columns == {"x": ["a", "b"], "y": [1, 2]}


def test_the_shortest_list_counts():
    assert texts("[[x]]-[[y]]", x=["a", "b", "c"], y=["1", "2"]) == ["a-1", "b-2"]


def test_an_empty_list_gives_no_branches():
    assert texts("[[x]]", x=[]) == []


@pytest.mark.parametrize(
    "value", ["{{other}}", "{{{other}}}", "[[other]]", "[[other|hidden]]", "{{missing}}", r"\1\g<0>"]
)
@pytest.mark.parametrize("placeholder", ["{{x}}", "[[x]]"])
def test_a_value_that_looks_like_a_placeholder_stays_as_it_is(placeholder, value):
    assert texts(f"{placeholder} {{{{other}}}}", x=[value], other="!") == [f"{value} !"]


def test_values_next_to_each_other_make_no_placeholder():
    assert texts("{{a}}{{b}}", a="{{", b="a}}") == ["{{a}}"]


@pytest.mark.parametrize("template", ["{{gone}}", "{{{gone}}}", "[[gone]]", "[[gone|hidden]]", "{{ gone }}"])
def test_a_missing_key_is_an_error_that_names_key_and_agent(template):
    with pytest.raises(FlowError, match=r"'Writer'.*'gone'.*'here'"):
        expand(template, make(here=1), "Writer")


def test_an_empty_value_is_not_missing():
    assert texts("<{{x}}{{y}}>", x=[], y="") == ["<>"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}}',
        '[["a", "b"]]',
        "if [[ -f x ]]; then",
        "{ {x} }",
        "{{}}",
        "[[]]",
        "[[x|other]]",
        "{{x",
    ],
)
def test_what_is_no_placeholder_stays(text):
    assert texts(text, x="!") == [text]


def test_a_value_that_json_cannot_carry_names_key_and_agent():
    with pytest.raises(FlowError, match=r"'A'.*'x'"):
        texts("{{{x}}}", x=object())


def test_a_whole_list_beside_one_of_its_elements():
    assert texts("[[x]] of {{x}}", x=["a", "b"]) == ["a of a\n\nb", "b of a\n\nb"]
