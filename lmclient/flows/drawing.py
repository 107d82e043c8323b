"""A trace as a drawing: Mermaid for documents, SVG for everything else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from lmclient.flows.graph import category_mark
from lmclient.flows.statistics import shown_costs
from lmclient.flows.trace import TraceStep

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 230, 58, 24, 46, 16
_LONGEST = 30
"""Characters of a line that fit into a box."""
_STYLE = (
    "text{font:12px sans-serif;text-anchor:middle}.name{font-weight:bold;font-size:13px}"
    "rect{fill:#eef3fb;stroke:#5b7db1}.failed{fill:#fbe9e7;stroke:#c0392b}path{fill:none;stroke:#888}"
)


def union(traces: Iterable[Sequence[TraceStep]]) -> list[TraceStep]:
    """The steps of several final contexts of one walk, each once, in their order."""
    return sorted({step.id: step for trace in traces for step in trace}.values(), key=lambda step: step.id)


def mermaid(trace: Sequence[TraceStep]) -> str:
    """The trace as a Mermaid flowchart (https://mermaid.js.org/syntax/flowchart.html)."""
    known = {step.id for step in trace}
    lines = ["flowchart TD"]
    for step in trace:
        label = "<br/>".join(_mermaid_text(line) for line in _lines(step))
        lines.append(f'    s{step.id}["{label}"]' + (":::failed" if step.error else ""))
    for step in trace:
        lines += [f"    s{parent} --> s{step.id}" for parent in step.parents if parent in known]
    if any(step.error for step in trace):
        lines.append("    classDef failed fill:#fbe9e7,stroke:#c0392b")
    return "\n".join(lines) + "\n"


def svg(trace: Sequence[TraceStep]) -> str:
    """The trace as an SVG image: a row for each generation of steps, the first one on top."""
    rows = _rows(trace)
    widest = max((len(row) for row in rows), default=1)
    width = 2 * _MARGIN + widest * (_WIDTH + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + max(len(rows), 1) * (_HEIGHT + _GAP_Y) - _GAP_Y
    places: dict[int, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        left = (width - len(row) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for column, step in enumerate(row):
            places[step.id] = (left + column * (_WIDTH + _GAP_X), _MARGIN + number * (_HEIGHT + _GAP_Y))
    edges = [
        _edge(places[parent], places[step.id])
        for step in trace
        for parent in step.parents
        if parent in places
    ]
    boxes = [_box(step, *places[step.id]) for step in trace]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}">',
            f"<style>{_STYLE}</style>",
            *edges,
            *boxes,
            "</svg>\n",
        ]
    )


def _rows(trace: Sequence[TraceStep]) -> list[list[TraceStep]]:
    """The steps by generation; a step stands below all of its parents."""
    generation: dict[int, int] = {}
    rows: list[list[TraceStep]] = []
    for step in trace:
        number = 1 + max((generation[parent] for parent in step.parents if parent in generation), default=-1)
        generation[step.id] = number
        if number == len(rows):
            rows.append([])
        rows[number].append(step)
    return rows


def _lines(step: TraceStep) -> list[str]:
    """What a box says: the agent, the call, and what it took."""
    name = step.agent if step.branch is None else f"{step.agent} {step.branch[0]}/{step.branch[1]}"
    called = category_mark(step.category) if step.category else step.profile
    took = [called] if called else []
    took.append(f"{step.duration:.2f} s")
    if step.calls:
        took.append(f"{step.usage.input_tokens} → {step.usage.output_tokens} tokens")
    lines = [name, " · ".join(took)]
    if step.error:
        lines.append(step.error)
    elif step.costs:
        lines.append(shown_costs(step.costs))
    return lines


def _mermaid_text(text: str) -> str:
    """Mermaid reads entities with # in the place of &, and takes some characters for markup."""
    return "".join(c if c.isalnum() or c in " .,:/→·-_" else f"#{ord(c)};" for c in " ".join(text.split()))


def _box(step: TraceStep, x: float, y: float) -> str:
    middle = x + _WIDTH / 2
    kind = ' class="failed"' if step.error else ""
    texts = []
    for number, line in enumerate(_lines(step)):
        shown = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
        name = ' class="name"' if number == 0 else ""
        texts.append(f'<text{name} x="{middle:g}" y="{y + 18 + 16 * number:g}">{_svg_text(shown)}</text>')
    whole = _svg_text("\n".join(_lines(step)))
    box = f'<rect{kind} x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
    return f"<g><title>{whole}</title>{box}{''.join(texts)}</g>"


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1 = start[0] + _WIDTH / 2, start[1] + _HEIGHT
    x2, y2 = end[0] + _WIDTH / 2, end[1]
    bend = (y1 + y2) / 2
    return f'<path d="M{x1:g} {y1:g}C{x1:g} {bend:g} {x2:g} {bend:g} {x2:g} {y2:g}"/>'


def _svg_text(text: str) -> str:
    """Text that XML can carry: it has no control characters but white space."""
    return html.escape("".join(c for c in text if c.isprintable() or c in "\n\t"))
