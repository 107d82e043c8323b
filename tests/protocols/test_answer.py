"""Tool calls out of fragments, and why an answer ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmclient import FinishReason
from lmclient.protocols.answer import Answer, ToolCalls, made_up_id

Fragment = tuple[int | None, str, str, str]


def built(*fragments: Fragment, cut: bool = False) -> list[tuple[str, str, str]]:
    calls = ToolCalls()
    for fragment in fragments:
        calls.add(*fragment)
    return [(call.id, call.name, call.raw_arguments) for call in calls.build("answer", cut=cut)]


@given(
    arguments=st.lists(st.text(alphabet='{}[]":,abc1 ', min_size=1, max_size=12), min_size=1, max_size=4),
    data=st.data(),
)
def test_any_interleaving_of_slots_gives_the_same_calls(arguments: list[str], data: st.DataObject) -> None:
    queues = [
        [(slot, f"x{slot}", "f", ""), *((slot, "", "", character) for character in text)]
        for slot, text in enumerate(arguments)
    ]
    order: list[Fragment] = [queue.pop(0) for queue in queues]
    while any(queues):
        queue = data.draw(st.sampled_from([queue for queue in queues if queue]))
        order.append(queue.pop(0))
    assert built(*order) == [(f"x{slot}", "f", text) for slot, text in enumerate(arguments)]


@pytest.mark.parametrize("slot", [0, None, 3])
def test_a_new_id_opens_a_new_call_in_the_same_slot(slot: int | None) -> None:
    """D02, D04"""
    assert built((slot, "a", "f", ""), (slot, "", "", "{}"), (slot, "b", "f", ""), (slot, "", "", "{}")) == [
        ("a", "f", "{}"),
        ("b", "f", "{}"),
    ]


def test_an_id_that_comes_late_belongs_to_the_open_call() -> None:
    assert built((0, "", "f", ""), (0, "a", "", "{}")) == [("a", "f", "{}")]


def test_a_name_that_comes_late_belongs_to_the_open_call() -> None:
    assert built((0, "a", "", ""), (0, "", "f", "{}")) == [("a", "f", "{}")]


def test_a_made_up_id_is_the_same_for_the_same_answer() -> None:
    assert built((0, "", "f", "{}")) == built((None, "", "f", "{}"))
    assert made_up_id("a", 0, "f", "{}") != made_up_id("a", 1, "f", "{}")


def test_made_up_ids_of_equal_calls_differ() -> None:
    first, second = built((0, "", "f", '{"a":1}'), (0, "", "f", '{"a":1}'))
    assert first[0] != second[0]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (FinishReason.STOP, FinishReason.TOOL_CALLS),
        (FinishReason.TOOL_CALLS, FinishReason.TOOL_CALLS),
        (FinishReason.UNKNOWN, FinishReason.TOOL_CALLS),
        (None, FinishReason.TOOL_CALLS),
        (FinishReason.LENGTH, FinishReason.LENGTH),
        (FinishReason.CONTENT_FILTER, FinishReason.CONTENT_FILTER),
        (FinishReason.ERROR, FinishReason.ERROR),
    ],
)
def test_complete_calls_make_the_outcome_tool_calls(said: FinishReason | None, outcome: FinishReason) -> None:
    answer = Answer()
    answer.calls.add(0, "x", "f", "{}")
    answer.finish_reason = said
    assert answer.outcome() is outcome


@pytest.mark.parametrize(
    ("said", "arguments", "valid"),
    [
        (FinishReason.STOP, "", True),
        (FinishReason.UNKNOWN, "", True),
        (FinishReason.LENGTH, "", False),
        (FinishReason.LENGTH, "{}", True),
        (FinishReason.LENGTH, '{"a":', False),
        (None, "", False),
    ],
)
def test_only_a_whole_call_of_a_cut_answer_is_valid(
    said: FinishReason | None, arguments: str, valid: bool
) -> None:
    """D06, D08"""
    answer = Answer()
    answer.calls.add(0, "x", "f", arguments)
    answer.finish_reason = said
    (call,) = answer.tool_calls()
    assert (call.arguments is not None) == valid


def test_a_name_in_pieces_is_one_name() -> None:
    """D03"""
    fragments = [(0, "x", "get_", ""), (0, "", "wea", ""), (0, "", "ther", ""), (0, "", "", "{}")]
    assert built(*fragments) == [("x", "get_weather", "{}")]


@pytest.mark.parametrize("first", ["", "{"])
@pytest.mark.parametrize("id", ["", "x"])
def test_a_name_that_is_repeated_is_one_name(id: str, first: str) -> None:
    """D03"""
    assert built((0, "x", "get", first), (0, id, "get", "}")) == [("x", "get", first + "}")]


def test_calls_that_share_an_id_get_ids_of_their_own() -> None:
    """D05"""
    calls = built((0, "x", "f", "{}"), (1, "x", "g", "{}"))
    assert [name for _, name, _ in calls] == ["f", "g"]
    assert calls[0][0] == "x" != calls[1][0]


def test_arguments_nested_without_end_are_no_arguments() -> None:
    calls = ToolCalls()
    calls.add(0, "x", "f", '{"a":' + "[" * 100_000)
    assert calls.build("answer", cut=False)[0].arguments is None
