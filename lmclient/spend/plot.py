"""A report as a bar chart, in a file (extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmclient.errors import ConfigurationError
from lmclient.spend.reports import SpendRow

WIDTH, HEIGHT = 10.0, 4.5
"""Inches, for each currency; a PNG has 100 dots per inch."""
MAX_LEVEL_LABELS = 7
"""With more places than that, their names stand upright."""


def plot(rows: Sequence[SpendRow], by: Sequence[str], path: Path) -> None:
    """Draws the costs of a report, a chart for each currency, into a `.png` or `.svg` file.

    The first of `by` runs along the axis, the others are stacked in colours. Raises
    `ConfigurationError` if the extra is missing or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            f"A plot needs the extra: pip install 'lmclient[plot]' ({error})."
        ) from error
    currencies = sorted({row.currency for row in rows if row.cost is not None}) or ["USD"]
    figure = Figure(figsize=(WIDTH, HEIGHT * len(currencies)), dpi=100, layout="constrained")
    for index, currency in enumerate(currencies):
        axes = figure.add_subplot(len(currencies), 1, index + 1)
        own = [row for row in rows if row.currency == currency]
        series = _series(own, by)
        places = list(dict.fromkeys(_place(row, by) for row in own))
        bottoms = [0.0] * len(places)
        for number, bars in enumerate(series.values()):
            heights = [bars.get(place, 0.0) for place in places]
            axes.bar(range(len(places)), heights, bottom=bottoms, label=str(number))
            bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
        axes.set_ylabel(f"cost in {currency}")
        axes.set_xticks(range(len(places)), [_shown(place) for place in places])
        axes.tick_params(axis="x", labelrotation=90 if len(places) > MAX_LEVEL_LABELS else 0)
        if len(by) > 1 and series:
            legend = axes.legend(title=", ".join(by[1:]), fontsize="small")
            # Set afterwards, since a label that begins with an underscore would be left out.
            for text, values in zip(legend.get_texts(), series, strict=True):
                text.set_text(", ".join(map(_shown, values)))
    try:
        figure.savefig(path, format=path.suffix[1:].lower())
    except OSError as error:
        raise ConfigurationError(f"The plot {path} cannot be written: {error}.") from error


def _series(
    rows: Sequence[SpendRow], by: Sequence[str]
) -> dict[tuple[str | None, ...], dict[str | None, float]]:
    """For each colour its values, and the heights by place."""
    series: dict[tuple[str | None, ...], dict[str | None, float]] = {}
    for row in rows:
        values = tuple(row.value(name) for name in by[1:])
        series.setdefault(values, {})[_place(row, by)] = float(row.cost or 0)
    return dict(sorted(series.items(), key=lambda item: [(value is None, value or "") for value in item[0]]))


def _place(row: SpendRow, by: Sequence[str]) -> str | None:
    return row.value(by[0]) if by else "all"


def _shown(value: str | None) -> str:
    """A name as it stands: a dollar sign would begin a formula."""
    return "-" if value is None else value.replace("$", r"\$")
