"""What a chart of costs shows: each cost once, and each name."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lmclient import SpendRow
from lmclient.spend.plot import plot

figures = pytest.importorskip("matplotlib.figure", reason="needs the extra plot")


def row(cost: str, **values: Any) -> SpendRow:
    counts = ("calls", "attempts", "requests", "input_tokens", "cached_input_tokens", "output_tokens")
    numbers = dict.fromkeys((*counts, "reasoning_tokens", "estimated", "unpriced"), 0)
    return SpendRow(**numbers, currency="USD", cost=Decimal(cost), saved_cost=Decimal(0), **values)


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were written to files."""
    written: list[Any] = []
    save = figures.Figure.savefig

    def saved(figure: Any, *arguments: Any, **options: Any) -> None:
        written.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(figures.Figure, "savefig", saved)
    monkeypatch.chdir(tmp_path)
    return written


def draw(drawn: list[Any], rows: Sequence[SpendRow], *by: str) -> Any:
    plot(rows, by, Path("costs.svg"))
    (axes,) = drawn[0].axes
    return axes


def test_a_value_that_is_a_dash_and_none_are_two_places(drawn: list[Any]) -> None:
    axes = draw(drawn, [row("1", tags={"user": "-"}), row("2", tags={"user": None})], "tag:user")
    assert [bar.get_height() for bar in axes.patches] == [1, 2]
    assert len({bar.get_x() for bar in axes.patches}) == 2


def test_a_value_that_is_a_dash_and_none_are_two_colours(drawn: list[Any]) -> None:
    rows = [row("1", profile="p", tags={"user": "-"}), row("2", profile="p", tags={"user": None})]
    axes = draw(drawn, rows, "profile", "tag:user")
    assert [(bar.get_y(), bar.get_height()) for bar in axes.patches] == [(0, 1), (1, 2)]


def test_every_colour_has_its_name_in_the_legend(drawn: list[Any]) -> None:
    names = ["$x$", "_ann", "bob", None]
    rows = [row("1", profile="p", tags={"user": name}) for name in names]
    axes = draw(drawn, rows, "profile", "tag:user")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [r"\$x\$", "_ann", "bob", "-"]


def test_every_place_has_its_name(drawn: list[Any]) -> None:
    axes = draw(drawn, [row("1", profile="_p"), row("2", profile="q")], "profile")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["_p", "q"]
