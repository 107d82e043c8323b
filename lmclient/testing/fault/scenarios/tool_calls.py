"""Scenarios with tool calls in fragments."""

from __future__ import annotations

import random
from collections.abc import Iterable

from lmclient.testing.fault.call import Call, Json
from lmclient.testing.fault.reply import Reply, chunked, encode, plain
from lmclient.testing.fault.scenario import CHAT, scenario
from lmclient.testing.fault.shapes import ToolCall, chunk, completion, ending, events

BAD_ARGUMENTS = '{"city":"Zürich","unit":'
TOOL_CALLS = (
    ToolCall("call_1", "get_weather", '{"city":"Zürich","unit":"celsius"}'),
    ToolCall("call_2", "get_time", '{"zone":"Europe/Zurich","format":"24h"}'),
)

FRAGMENTS = 5  # parts that the arguments of a tool call are cut into


def cut(data: str, count: int, rng: random.Random) -> list[str]:
    """Cut data at random into count parts, none of them empty."""
    places = sorted(rng.sample(range(1, len(data)), count - 1))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def tool_delta(
    call: Call, arguments: str, *, index: int | None = None, first: ToolCall | None = None
) -> Json:
    """A chunk with one fragment of a tool call; the first fragment has its id and name."""
    fragment: Json = {} if index is None else {"index": index}
    if first:
        fragment |= {"id": first.id, "type": "function"}
    fragment["function"] = {"name": first.name, "arguments": arguments} if first else {"arguments": arguments}
    return chunk(call, {"tool_calls": [fragment]})


def tool_stream(call: Call, deltas: Iterable[Json]) -> Reply:
    role = chunk(call, {"role": "assistant", "content": None})
    return chunked(call, events([role, *deltas, *ending(call, "tool_calls")]))


@scenario(CHAT)
def tool_call_stream(call: Call) -> Reply:
    if not call.stream:
        return plain(call, encode(completion(call, None, "tool_calls", TOOL_CALLS)))
    deltas = [tool_delta(call, "", index=index, first=tool) for index, tool in enumerate(TOOL_CALLS)]
    rng = call.rng()
    for fragments in zip(*(cut(tool.arguments, FRAGMENTS, rng) for tool in TOOL_CALLS), strict=True):
        deltas += [tool_delta(call, fragment, index=index) for index, fragment in enumerate(fragments)]
    return tool_stream(call, deltas)


@scenario(CHAT)
def tool_call_no_index(call: Call) -> Reply:
    if not call.stream:
        return tool_call_stream(call)
    deltas = []
    rng = call.rng()
    for tool in TOOL_CALLS:
        first, *rest = cut(tool.arguments, FRAGMENTS, rng)
        deltas.append(tool_delta(call, first, first=tool))
        deltas += [tool_delta(call, fragment) for fragment in rest]
    return tool_stream(call, deltas)


@scenario(CHAT)
def tool_call_bad_json(call: Call) -> Reply:
    tool = ToolCall("call_1", "get_weather", BAD_ARGUMENTS)
    if not call.stream:
        return plain(call, encode(completion(call, None, "tool_calls", [tool])))
    deltas = [tool_delta(call, "", index=0, first=tool)]
    deltas += [tool_delta(call, fragment, index=0) for fragment in cut(tool.arguments, FRAGMENTS, call.rng())]
    return tool_stream(call, deltas)
