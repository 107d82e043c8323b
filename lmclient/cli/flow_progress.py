"""The progress of a flow on a terminal: a line for each branch that runs, and the totals."""

from __future__ import annotations

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from lmclient.cli.terminal import one_line
from lmclient.flows.context import AgentContext
from lmclient.flows.events import (
    BranchStarted,
    ChunkReceived,
    Failed,
    FlowEvent,
    StepFinished,
    StepStarted,
)
from lmclient.flows.statistics import FlowStatistics, shown_costs

ROWS_SHOWN = 20
"""Branches that are listed one by one; the others are counted."""


class FlowProgress:
    """Shows the events of one walk on `console`; use it in a `with` block.

    On a terminal the lines are live; elsewhere a line is written when a branch is over.
    """

    def __init__(self, console: Console, statistics: FlowStatistics) -> None:
        self._console = console
        self._statistics = statistics
        self._rows: dict[int, _Row] = {}
        self._live = Live(console=console, get_renderable=self._rendered, transient=True)

    def __enter__(self) -> FlowProgress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, event: FlowEvent) -> None:
        """Takes the next event."""
        match event:
            case StepStarted():
                self._rows[id(event.context)] = _Row(event.agent, event.context, event.context)
            case BranchStarted():
                self._rows.pop(id(event.origin), None)  # the branches take the place of their step
                label = f"{event.agent} {event.number}/{event.count}"
                self._rows[id(event.context)] = _Row(label, event.context, event.origin)
            case ChunkReceived():
                self._rows[id(event.context)].received += len(event.chunk.text) + len(event.chunk.reasoning)
            case Failed():
                self._close(event.context, event.error)
            case StepFinished():
                for row in [row for row in self._rows.values() if row.origin is event.origin]:
                    self._close(row.context)

    def totals(self) -> str:
        """Calls, tokens and cost so far, in one line."""
        statistics = self._statistics
        cached = f" and {statistics.cached} from the cache" if statistics.cached else ""
        return (
            f"{statistics.requests} requests{cached}, {statistics.input_tokens} input and "
            f"{statistics.output_tokens} output tokens, cost {shown_costs(statistics.costs) or 'unknown'}"
        )

    def _close(self, context: AgentContext, error: Exception | None = None) -> None:
        row = self._rows.pop(id(context), None)
        if row is not None:
            end = Text(f" ✗ {one_line(str(error))}", "red") if error is not None else Text(" ✓", "green")
            self._console.print(row.text().append(end), soft_wrap=True)
        elif error is not None:
            self._console.print(Text(f"✗ {one_line(str(error))}", "red"), soft_wrap=True)

    def _rendered(self) -> Group:
        table = Table.grid(padding=(0, 1))
        rows = list(self._rows.values())
        for row in rows[:ROWS_SHOWN]:
            table.add_row("✓" if row.is_over else row.spinner, row.text())
        if len(rows) > ROWS_SHOWN:
            table.add_row("", f"and {len(rows) - ROWS_SHOWN} more")
        return Group(table, Text(self.totals(), "dim"))


class _Row:
    """One branch of a running step."""

    def __init__(self, label: str, context: AgentContext, origin: AgentContext) -> None:
        self.label = label
        self.context = context
        self.origin = origin
        self.received = 0
        self.spinner = Spinner("dots")
        self._known = len(context.trace)

    @property
    def is_over(self) -> bool:
        return len(self.context.trace) > self._known and self.context.trace[self._known].duration > 0

    def text(self) -> Text:
        parts = [one_line(self.label)]
        if len(self.context.trace) > self._known:
            step = self.context.trace[self._known]
            if step.duration:
                parts.append(f"{step.duration:.1f} s")
            if step.calls:
                parts.append(f"{step.usage.input_tokens} → {step.usage.output_tokens} tokens")
            elif self.received:
                parts.append(f"{self.received} characters")
            if step.costs:
                parts.append(shown_costs(step.costs))
        return Text("  ".join(parts))
