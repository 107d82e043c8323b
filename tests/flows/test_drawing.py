"""Traces as Mermaid and SVG."""

import datetime
import xml.etree.ElementTree as ElementTree
from decimal import Decimal

from lmclient import Usage
from lmclient.flows import TraceStep
from lmclient.flows.drawing import mermaid, svg, union

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def step(id, agent, *parents, **fields):
    return TraceStep(id=id, agent=agent, parents=parents, started=NOON, duration=1.5, **fields)


USAGE = Usage(input_tokens=10, output_tokens=4)
TRACE = [
    step(1, "Split", category="m", calls=1, usage=USAGE, cost=Decimal("0.0100")),
    step(2, "Work", 1, branch=(1, 2), profile="mini"),
    step(3, "Work", 1, branch=(2, 2), error='no "luck" <here>'),
    step(4, "Join", 2, 3),
]


def test_a_trace_as_mermaid():
    assert mermaid(TRACE) == (
        "flowchart TD\n"
        '    s1["Split<br/>M · 1.50 s · 10 → 4 tokens<br/>0.01 USD"]\n'
        '    s2["Work 1/2<br/>mini · 1.50 s"]\n'
        '    s3["Work 2/2<br/>1.50 s<br/>no #34;luck#34; #60;here#62;"]:::failed\n'
        '    s4["Join<br/>1.50 s"]\n'
        "    s1 --> s2\n"
        "    s1 --> s3\n"
        "    s2 --> s4\n"
        "    s3 --> s4\n"
        "    classDef failed fill:#fbe9e7,stroke:#c0392b\n"
    )


def test_a_trace_as_svg_has_a_box_for_each_step_and_a_line_for_each_parent():
    image = ElementTree.fromstring(svg(TRACE))
    names = [element.tag.rpartition("}")[2] for element in image.iter()]
    assert (names.count("rect"), names.count("path")) == (4, 4)
    assert 'no "luck" <here>' in "".join(image.itertext())


def test_steps_of_one_generation_stand_side_by_side():
    image = ElementTree.fromstring(svg(TRACE))
    rows = [rect.get("y") for rect in image.iter("{http://www.w3.org/2000/svg}rect")]
    assert rows[1] == rows[2]
    assert len({*rows}) == 3


def test_an_empty_trace_is_an_empty_drawing():
    assert mermaid([]) == "flowchart TD\n"
    ElementTree.fromstring(svg([]))


def test_what_xml_cannot_carry_is_left_out():
    ElementTree.fromstring(svg([step(1, "A\x00\x1b[1m", error="\ud800")]))


def test_traces_of_one_walk_are_put_together():
    assert [s.id for s in union([TRACE[:2], [TRACE[0], TRACE[2]]])] == [1, 2, 3]
