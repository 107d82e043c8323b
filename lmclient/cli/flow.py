"""`lmclient flow`: flows from the command line."""

from __future__ import annotations

import contextlib
import enum
import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmclient.cli.debug import Debug
from lmclient.cli.terminal import safe
from lmclient.errors import FlowError

if TYPE_CHECKING:
    from lmclient.flows.context import AgentContext

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Flows of agents.")


class DrawingFormat(enum.StrEnum):
    """What `render` writes."""

    MERMAID = "mermaid"
    SVG = "svg"


@app.callback()
def flow() -> None:
    """Flows of agents."""


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="MODULE:FLOW", help="Where the agents are.")],
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A value; @FILE reads it; again for a list."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep the results as JSON.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Walk a flow and print its last answers.

    FLOW is a list of agents that begins with the first to run, an AgentContext, or a function that
    returns either. Progress, tokens and cost go to stderr.
    """
    import asyncio

    context = _context(name)
    _set_values(context, values or [])
    results = asyncio.run(_walked(context))
    if save is not None:
        save.write_text(f"[{','.join(result.to_json() for result in results)}]\n", encoding="utf-8")
    for result in results:
        if result.error is None and result.last_completion is not None:
            typer.echo(safe(result.last_completion.text))
    if any(result.error is not None for result in results):
        raise typer.Exit(1)


@app.command()
def render(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `flow run --save` wrote.")],
    format: Annotated[DrawingFormat, typer.Option("--format", help="What to draw.")] = DrawingFormat.MERMAID,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A file instead of stdout.")] = None,
    debug: Debug = False,
) -> None:
    """Draw the trace of a flow as Mermaid or SVG."""
    from lmclient.flows.drawing import mermaid, svg, union

    trace = union(context.trace for context in _saved(file))
    if output is not None and output.suffix == ".svg":
        format = DrawingFormat.SVG
    drawing = svg(trace) if format is DrawingFormat.SVG else mermaid(trace)
    if output is None:
        typer.echo(drawing, nl=False)
    else:
        output.write_text(drawing, encoding="utf-8")


async def _walked(context: AgentContext) -> list[AgentContext]:
    from rich.console import Console

    from lmclient.cli.flow_progress import FlowProgress
    from lmclient.client import AsyncClient
    from lmclient.flows.events import Finished
    from lmclient.flows.executor import FlowExecutor

    results: list[AgentContext] = []
    async with AsyncClient() as client:
        with FlowProgress(Console(stderr=True, highlight=False), context.statistics) as progress:
            events = FlowExecutor(client).stream(next(iter(context.agents)), context)
            async with contextlib.aclosing(events):
                async for event in events:
                    progress.show(event)
                    if isinstance(event, Finished):
                        results += event.contexts
        typer.echo(progress.totals(), err=True)
    for result in results[:1]:
        typer.echo(safe(result.graph_text()), err=True)
    return results


def _context(name: str) -> AgentContext:
    """The context for the flow that the command line names. Raises `FlowError` if there is none."""
    from lmclient.flows.agent import Agent
    from lmclient.flows.context import AgentContext

    found = _imported(name)
    if callable(found) and not isinstance(found, AgentContext):
        found = found()
    if isinstance(found, list | tuple) and found and all(isinstance(item, Agent) for item in found):
        found = AgentContext(found)
    if not isinstance(found, AgentContext) or not found.agents:
        raise FlowError(f"{name!r} is {found!r:.80}; expected a list of agents or an AgentContext.")
    return found


def _imported(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise FlowError(f"{name!r} does not name a flow; expected MODULE:FLOW, such as announcement:agents.")
    if sys.path[0] != os.getcwd():
        sys.path.insert(0, os.getcwd())  # whoever names a module means the one beside them
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise FlowError(f"There is no module {error.name!r} (searched in {os.getcwd()}, too).") from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise FlowError(f"The module {module_name!r} has no {attribute!r}.") from None
    return found


def _set_values(context: AgentContext, values: list[str]) -> None:
    given: dict[str, list[str]] = {}
    for text in values:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise FlowError(f"--set {text!r}: expected KEY=VALUE.")
        if value.startswith("@"):
            try:
                value = Path(value[1:]).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise FlowError(f"--set {key}: {value[1:]!r} cannot be read ({error}).") from error
        given.setdefault(key, []).append(value)
    for key, found in given.items():
        if len(found) == 1:
            context.set(key, found[0])
        else:
            context.set_all(key, found)


def _saved(file: Path) -> list[AgentContext]:
    from lmclient.flows.context import AgentContext

    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FlowError(f"{file} cannot be read as the results of a flow ({error}).") from error
    contexts = saved if isinstance(saved, list) else [saved]
    return [AgentContext.from_json(json.dumps(context)) for context in contexts]
