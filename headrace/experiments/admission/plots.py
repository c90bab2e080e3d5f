"""Figures 4 to 7 as PNG and SVG: the paper's size, and beside it the small side with SQPR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.experiments.admission.board import NAMES
from headrace.experiments.admission.cases import (
    BOUND,
    COMPLEXITY,
    HEURISTIC,
    HOSTS,
    OFFLINE,
    OURS,
    OVERLAP,
    RESOURCES,
    SODA,
    SODA_NAMED,
    SQPR,
    TIMES_HOSTS,
    TIMES_WAYS,
)
from headrace.experiments.admission.tables import Load, Tables, batch_lines
from headrace.experiments.canvas import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    OURS: "#009E73", SQPR: "#0072B2", HEURISTIC: "#E69F00", SODA: "#D55E00", SODA_NAMED: "#CC79A7",
    BOUND: "#555555", OFFLINE: "#000000",
}  # fmt: skip
"""Okabe and Ito's: told apart with any colour vision."""
MARKS = {OURS: "o", SQPR: "s", HEURISTIC: "^", SODA: "X", SODA_NAMED: "P", BOUND: "", OFFLINE: ""}
STYLES = {BOUND: "--", OFFLINE: ":"}
PLANNERS = (OFFLINE, OURS, BOUND, SQPR, HEURISTIC)
PREFIX = "admission-fig"


def draw(tables: Tables, folder: Path) -> list[Path]:
    """Write all figures."""
    makers: dict[str, Callable[[Tables], Figure]] = {
        "4a": _figure_4a, "4b": _figure_4b, "4c": _figure_4c, "5": _figure_5, "6": _figure_6, "7": _figure_7,
    }  # fmt: skip
    return [path for name, make in makers.items() for path in save(make(tables), folder, PREFIX + name)]


def _planner_of(label: str) -> str:
    """SQPR's labels also say its deadline."""
    return next((name for name, told in NAMES.items() if told == label), SQPR)


def _finish(axis: Axes, title: str, x: str, y: str, *, zero: bool = True) -> None:
    if zero:
        axis.set_ylim(bottom=0)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, loc="left", fontsize=10)
    axis.grid(axis="y", linewidth=0.4, alpha=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    if axis.get_legend_handles_labels()[1]:
        axis.legend(fontsize=8, frameon=False)


def _grown(axis: Axes, tables: Tables, key: str, title: str) -> None:
    """Admitted over submitted."""
    submitted = tables.submitted[key]
    short = min((label for label in tables.curves[key] if _planner_of(label) == SQPR), default="")
    several = sum(_planner_of(label) == SQPR for label in tables.curves[key]) > 1
    for label, values in tables.curves[key].items():
        planner = _planner_of(label)
        style = "-." if several and label == short else STYLES.get(planner, "-")
        x = submitted * np.arange(1, len(values) + 1) / len(values)
        axis.plot(
            x, values, style, label=label, color=COLOURS[planner], marker=MARKS[planner], markevery=8,
            markersize=5, linewidth=1.5,
        )  # fmt: skip
    axis.axhline(tables.ceilings[key], linestyle=":", color=COLOURS[OFFLINE], label=NAMES[OFFLINE])
    axis.plot([0, submitted], [0, submitted], color="#bbbbbb", linewidth=0.8, zorder=0)
    _finish(axis, title, "queries submitted", "queries satisfied")


def _figure_4a(tables: Tables) -> Figure:
    figure = new_figure(12, 8.4)
    keys = {
        "4(a) 100 Mbps": "Figure 4(a): the paper's size, 100 Mbps a host",
        "4(a) small": "10 hosts, 100 Mbps",
        "4(a) 1000 Mbps": "1,000 Mbps a host: only CPU binds",
        "4(a) 50 Mbps": "50 Mbps a host",
    }
    for axis, (key, title) in zip(figure.subplots(2, 2).flat, keys.items(), strict=True):
        _grown(axis, tables, key, title)
    return figure


def _figure_4b(tables: Tables) -> Figure:
    figure = new_figure(6.5, 4.4)
    axis = figure.subplots()
    for planner in (SQPR, SODA):
        found = batch_lines(tables, planner)
        if found:
            values = [one.admitted for one in found.values()]
            label = found[1].label + (" a query" if planner == SQPR else "")
            at = np.arange(len(found), dtype=float)
            axis.plot(at, values, color=COLOURS[planner], marker=MARKS[planner], label=label)
            axis.set_xticks(at, [str(batch) for batch in found])
    _finish(axis, "Figure 4(b): batches, 10 hosts", "queries submitted together", "queries satisfied")
    return figure


def _series(axis: Axes, tables: Tables, figure: str, group: str, planners: Sequence[str]) -> None:
    for planner in planners:
        found = tables.series(figure, group, planner)
        if found:
            axis.plot(
                list(found), [one.admitted for one in found.values()], STYLES.get(planner, "-"),
                color=COLOURS[planner], marker=MARKS[planner], label=next(iter(found.values())).label,
                markersize=5, linewidth=1.5,
            )  # fmt: skip


def _figure_4c(tables: Tables) -> Figure:
    figure = new_figure(13, 4.6)
    axes = figure.subplots(1, 3)
    shades = {"250": "#08306b", "500": "#2171b5", "1000": "#6baed6"}
    for group, shade in shades.items():
        for planner, style in ((OURS, "-"), (BOUND, "--")):
            found = tables.series(OVERLAP, group, planner)
            values = [one.admitted for one in found.values()]
            label = f"{NAMES[planner]}, {group} streams"
            axes[0].plot(list(found), values, style, color=shade, marker=MARKS[planner], label=label)
    _finish(axes[0], "Figure 4(c): 50 hosts", "Zipf parameter", "queries satisfied")
    _series(axes[1], tables, OVERLAP, "small 100", PLANNERS)
    _finish(axes[1], "10 hosts, 100 streams", "Zipf parameter", "queries satisfied")
    sizes = (50, 100, 200)
    for planner in PLANNERS:
        lines = [tables.series(OVERLAP, f"small {n}", planner).get(1.0) for n in sizes]
        values = [one.admitted for one in lines if one]
        if values:
            label = next(one.label for one in lines if one)
            axes[2].plot(sizes[: len(values)], values, STYLES.get(planner, "-"), color=COLOURS[planner],
                         marker=MARKS[planner], label=label)  # fmt: skip
    _finish(axes[2], "10 hosts, Zipf 1", "base streams", "queries satisfied")
    return figure


def _figure_5(tables: Tables) -> Figure:
    figure = new_figure(13, 8.2)
    axes = figure.subplots(2, 3)
    panels = (
        (HOSTS, "Figure 5(a): hosts, 500 streams", "hosts"),
        (RESOURCES, "Figure 5(b): 10 Gbps, 50 hosts", "CPU of a host"),
        (COMPLEXITY, "Figure 5(c): complexity, 50 hosts", "streams in a query"),
    )
    for column, (name, title, x) in enumerate(panels):
        for row, group in enumerate(("", "small")):
            axis = axes[row, column]
            _series(axis, tables, name, group, PLANNERS)
            shown = title if not group else ("100 streams" if name == HOSTS else "6 hosts")
            _finish(axis, shown, x, "queries satisfied")
            axis.set_xticks(
                sorted({one.x for one in tables.lines if (one.figure, one.group) == (name, group)})
            )
    return figure


def _figure_6(tables: Tables) -> Figure:
    figure = new_figure(11, 4.4)
    panels = (
        (TIMES_HOSTS, "Figure 6(a)", "hosts"),
        (TIMES_WAYS, "Figure 6(b): 50 hosts", "streams in a query"),
    )
    for axis, (name, title, x) in zip(figure.subplots(1, 2), panels, strict=True):
        for planner in (SQPR, OURS, HEURISTIC):
            mine = [one for one in tables.times if (one.figure, one.planner) == (name, planner)]
            at = [one.x for one in mine]
            colour, mark = COLOURS[planner], MARKS[planner]
            if mine:
                axis.plot(at, [one.mean_ms for one in mine], color=colour, marker=mark, label=NAMES[planner])
                axis.plot(at, [one.most_ms for one in mine], ":", color=colour, linewidth=1)
        axis.set_yscale("log")
        _finish(axis, f"{title}; dotted: the longest", x, "mean milliseconds of a query (log)", zero=False)
        axis.set_xticks(sorted({one.x for one in tables.times if one.figure == name}))
    return figure


def _figure_7(tables: Tables) -> Figure:
    figure = new_figure(14, 4.8)
    left, middle, right = figure.subplots(1, 3)
    _grown(left, tables, "7(a)", "Figure 7(a): 15 hosts")
    for load in tables.loads:
        if load.planner in (SQPR, SODA, OURS):
            _cdf(middle, load, [100 * one for one in load.cpu])
            _cdf(right, load, load.network)
    _finish(middle, "Figure 7(b): CPU of the hosts", "CPU utilisation, %", "share of the hosts")
    _finish(right, "Figure 7(c): network of the hosts", "sent and received, Kbps", "share of the hosts")
    return figure


def _cdf(axis: Axes, load: Load, values: Sequence[float]) -> None:
    y = np.arange(1, len(values) + 1) / len(values)
    style = "--" if load.early else "-"
    label = f"{NAMES[load.planner]}-{load.submitted}"
    axis.step(values, y, style, where="post", color=COLOURS[load.planner], label=label, linewidth=1.4)
