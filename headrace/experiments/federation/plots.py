"""Figures 5 and 6 as PNG and SVG: throughput of what is chosen beside either engine alone, and what the
feasibility check does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.experiments.canvas import new_figure, save
from headrace.experiments.federation.cases import DUCKDB, SPARK
from headrace.experiments.federation.tables import CHOSEN, UNCHECKED, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PREFIX = "federation-fig"
COLOURS = {CHOSEN: "#009E73", SPARK: "#D55E00", DUCKDB: "#0072B2", UNCHECKED: "#E69F00"}
"""Okabe and Ito's: told apart with any colour vision."""
MARKS = {CHOSEN: "o", SPARK: "X", DUCKDB: "s", UNCHECKED: "^"}
LABELS = {
    CHOSEN: "chosen",
    SPARK: "Spark alone",
    DUCKDB: "DuckDB alone",
    UNCHECKED: "chosen without the check",
}
OTHER = "#999999"
_ACROSS = 3


def draw(tables: Tables, folder: Path) -> list[Path]:
    """Write all figures; none where nothing was run."""
    if not tables.points:
        return []
    made = {"5": _figure_5(tables), "5-cpu": _figure_cpu(tables), "6": _figure_6(tables)}
    return [path for name, figure in made.items() for path in save(figure, folder, PREFIX + name)]


def _figure_5(tables: Tables) -> Figure:
    figure = new_figure(13, 2.9 * len(tables.queries) / 2)
    axes = figure.subplots(-(-len(tables.queries) // 2), 4, squeeze=False, width_ratios=(3, 2, 3, 2))
    for number, query in enumerate(tables.queries):
        row = axes[number // 2]
        left, right = row[number % 2 * 2], row[number % 2 * 2 + 1]
        _throughputs(left, tables, query, (SPARK, DUCKDB, CHOSEN))
        _bars(right, tables, query)
    for spare in axes.flat[2 * len(tables.queries) :]:
        spare.set_visible(False)
    return figure


def _figure_6(tables: Tables) -> Figure:
    figure, axes = _grid(tables.queries)
    for axis, query in zip(axes, tables.queries, strict=True):
        found = tables.of(query)
        rates = [one.rate for one in found]
        _requested(axis, rates)
        _line(axis, UNCHECKED, rates, [one.throughput_unchecked for one in found])
        _line(axis, CHOSEN, rates, [one.throughput for one in found])
        _finish(axis, query, "throughput, rows/s")
    return figure


def _figure_cpu(tables: Tables) -> Figure:
    """Not in the paper: what keeping up costs."""
    figure, axes = _grid(tables.queries)
    for axis, query in zip(axes, tables.queries, strict=True):
        for name in (SPARK, DUCKDB, CHOSEN):
            mine = [p for p in tables.points if p.query == query and p.cpu is not None]
            points = [p for p in mine if (p.chosen if name == CHOSEN else name in p.names)]
            _line(axis, name, [point.rate for point in points], [point.cpu or 0.0 for point in points])
        _finish(axis, query, "CPU-s per second", zero=False)
        # From hundreds of rows a second to tens of thousands: on an even scale the low rates are one spot.
        axis.set_xscale("log")
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.set_ylim(10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)))
        for way in (axis.xaxis, axis.yaxis):
            way.set_major_formatter("{x:,g}")
            way.set_minor_formatter("")
    return figure


def _grid(queries: Sequence[str]) -> tuple[Figure, list[Axes]]:
    down = -(-len(queries) // _ACROSS)
    figure = new_figure(11, 2.9 * down)
    axes = list(figure.subplots(down, _ACROSS, squeeze=False).flat)
    for spare in axes[len(queries) :]:
        spare.set_visible(False)
    return figure, axes[: len(queries)]


def _throughputs(axis: Axes, tables: Tables, query: str, names: Sequence[str]) -> None:
    _requested(axis, tables.rates)
    for name in names:
        if name == CHOSEN:
            found = [(one.rate, one.throughput) for one in tables.of(query)]
        else:
            found = [(p.rate, p.throughput) for p in tables.points if p.query == query and name in p.names]
        _line(axis, name, [rate for rate, _ in found], [rows for _, rows in found])
    _finish(axis, query, "throughput, rows/s")


def _requested(axis: Axes, rates: Sequence[int]) -> None:
    axis.plot(rates, rates, ":", color="#555555", linewidth=1, label="what comes in")


def _line(axis: Axes, name: str, x: Sequence[float], y: Sequence[float]) -> None:
    if x:
        size = 9 if name == UNCHECKED else 5
        axis.plot(x, y, color=COLOURS[name], marker=MARKS[name], markersize=size, label=LABELS[name])


def _bars(axis: Axes, tables: Tables, query: str) -> None:
    """The highest throughput of each; one with an arrow kept up with all it was measured at: there may be
    more."""
    found = [one for one in (tables.maximum(query, name) for name in (CHOSEN, SPARK, DUCKDB)) if one]
    axis.bar(
        [LABELS[one.label].replace(" alone", "\nalone") for one in found],
        [one.rows for one in found],
        color=[COLOURS.get(one.label, OTHER) for one in found],
        width=0.6,
    )
    for place, one in enumerate(found):
        text = f"{one.rows:,.0f}" + ("\N{UPWARDS ARROW}" if one.at_least or one.ceiling else "")
        axis.annotate(text, (place, one.rows), ha="center", va="bottom", fontsize=8)
    axis.margins(y=0.15)
    axis.set_title("highest", loc="left", fontsize=9)
    axis.tick_params(labelsize=7)
    axis.spines[["top", "right"]].set_visible(False)


def _finish(axis: Axes, title: str, y: str, *, zero: bool = True) -> None:
    if zero:
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)
    axis.set_xlabel("rows/s that come in", fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.set_title(title, loc="left", fontsize=10)
    axis.tick_params(labelsize=7)
    axis.grid(axis="y", linewidth=0.4, alpha=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=7, frameon=False)
