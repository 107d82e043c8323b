"""AG-UI events, read with the models of the official package."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from ag_ui.core import Event

from lmclient.ui import ag_ui_events

adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(Event)


def events_of(written: bytes) -> list[Any]:
    """The events; none may have a field that the protocol does not know."""
    texts = written.decode().removesuffix("\n\n").split("\n\n")
    events = [adapter.validate_json(text.removeprefix("data: ")) for text in texts]
    assert [event.model_extra for event in events if event.model_extra] == []
    return events


@pytest.fixture
async def events(whole: Any, read: Any) -> list[Any]:
    return events_of(await read(ag_ui_events(whole.stream(), thread_id="t", run_id="r")))


async def test_they_come_in_the_protocols_order(events: list[Any]) -> None:
    assert [event.type.value for event in events] == [
        "RUN_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "RUN_FINISHED",
    ]


async def test_text_and_reasoning_are_whole(events: list[Any]) -> None:
    def text(kind: str) -> str:
        return "".join(event.delta for event in events if event.type == kind)

    assert text("TEXT_MESSAGE_CONTENT") == "Let me see \u2028 ✅."
    assert text("REASONING_MESSAGE_CONTENT") == "I must look."


async def test_a_message_keeps_its_id_and_the_next_has_another(events: list[Any]) -> None:
    ids = [event.message_id for event in events if hasattr(event, "message_id")]
    assert (len(set(ids[:6])), len(set(ids[6:])), len(set(ids))) == (1, 1, 2)


async def test_the_end_has_usage_cost_and_the_open_calls(events: list[Any]) -> None:
    end = events[-1]
    (usage,) = end.usage
    assert (end.thread_id, end.run_id) == ("t", "r")
    assert (usage.input_tokens, usage.cached_input_tokens, usage.reasoning_tokens) == (10, 4, 2)
    assert end.outcome.pending_tool_call_ids == ["call-1", "call-2"]
    assert end.result["cost"] == 0.25


async def test_an_error_ends_the_run(broken: Any, read: Any) -> None:
    *_, text_end, last = events_of(await read(ag_ui_events(broken.stream())))
    assert (text_end.type, last.type) == ("TEXT_MESSAGE_END", "RUN_ERROR")
    assert (last.message, last.code) == ("The line broke.", "upstream_unreachable")
