"""Figures 2 and 6 to 16 as PNG and SVG, and one of our own: what the rate model does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.experiments.canvas import new_figure, save
from headrace.experiments.placement.cases import (
    AIRLINE,
    BOTTOM_UP,
    EXACT,
    IN_NETWORK,
    JOINT,
    NPC,
    OTHER_MODELS,
    PLAN_THEN_DEPLOY,
    RELAXATION,
    SYNTHETIC,
    TOP_DOWN,
)
from headrace.experiments.placement.tables import Curves, NetworkSize, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    EXACT: "#009E73", JOINT: "#000000", TOP_DOWN: "#0072B2", NPC: "#56B4E9", BOTTOM_UP: "#CC79A7",
    IN_NETWORK: "#E69F00", RELAXATION: "#D55E00", PLAN_THEN_DEPLOY: "#8c6d1f",
}  # fmt: skip
"""Okabe and Ito's: told apart with any colour vision."""
MARKS = {
    EXACT: "o", JOINT: "*", TOP_DOWN: "v", NPC: "D", BOTTOM_UP: "^",
    IN_NETWORK: "s", RELAXATION: "X", PLAN_THEN_DEPLOY: "P",
}  # fmt: skip
SHADES = ("#c6dbef", "#6baed6", "#2171b5", "#08306b", "#D55E00")
"""Of the cluster sizes, the largest in another colour."""

PREFIX = "placement-fig"
MARKED = 6
"""Marks on a curve."""


def draw(tables: Tables, folder: Path) -> list[Path]:
    """Write all figures."""
    makers: dict[str, Callable[[Tables], Figure]] = {
        "02": _figure_2, "06-09": _figures_6_to_9, "10-11": _figures_10_11, "12-13": _figures_12_13,
        "14": _figure_14, "15": _figure_15, "16": _figure_16, "-rates": _rates,
    }  # fmt: skip
    return [path for name, make in makers.items() for path in save(make(tables), folder, PREFIX + name)]


def _curves(axis: Axes, curves: Curves, *, title: str, value: str, log: bool = False) -> None:
    for number, (label, values) in enumerate(curves.items()):
        planner = label.split(",")[0]
        x = np.arange(1, len(values) + 1)
        every = max(1, len(values) // MARKED)
        # Marks of curves that lie on each other stand at different places.
        first = every * (number + 1) // (len(curves) + 1)
        axis.plot(
            x, values, label=label, color=COLOURS[planner], marker=MARKS[planner], markersize=5,
            markevery=(first, every), linewidth=1.4, linestyle="--" if "no reuse" in label else "-",
        )  # fmt: skip
    _finish(axis, title, "queries deployed", value, log)


def _sized_curves(axis: Axes, curves: Curves, *, title: str, value: str, log: bool = False) -> None:
    for (label, values), shade in zip(curves.items(), SHADES, strict=True):
        axis.plot(
            np.arange(1, len(values) + 1), values, label=label.split(", ")[1], color=shade, linewidth=1.8
        )
    _finish(axis, title, "queries deployed", value, log)


def _finish(axis: Axes, title: str, x: str, y: str, log: bool) -> None:
    if log:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, loc="left", fontsize=10)
    axis.grid(axis="y", linewidth=0.4, alpha=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, frameon=False)


def _figure_2(tables: Tables) -> Figure:
    figure = new_figure(7.5, 5)
    title = f"Figure 2: {len(tables.figures['2'][EXACT])} queries over five streams each, 64 sites"
    _curves(figure.subplots(), tables.figures["2"], title=title, value="cumulative cost")
    return figure


def _figures_6_to_9(tables: Tables) -> Figure:
    figure = new_figure(11, 8.4)
    axes = figure.subplots(2, 2)
    panels = (
        ("6", "Figure 6: Bottom-Up, plans compared", True),
        ("7", "Figure 7: Top-Down, plans compared", True),
        ("8", "Figure 8: Bottom-Up, cost", False),
        ("9", "Figure 9: Top-Down, cost", False),
    )
    for axis, (number, title, log) in zip(axes.flat, panels, strict=True):
        value = "cumulative plans (log)" if log else "cumulative cost"
        _sized_curves(axis, tables.figures[number], title=title, value=value, log=log)
    return figure


def _figures_10_11(tables: Tables) -> Figure:
    figure = new_figure(11, 4.4)
    left, right = figure.subplots(1, 2)
    _curves(left, tables.figures["10"], title="Figure 10: NPC, cost", value="cumulative cost")
    _curves(
        right, tables.figures["11"], title="Figure 11: NPC, plans", value="cumulative plans (log)", log=True
    )
    return figure


def _figures_12_13(tables: Tables) -> Figure:
    figure = new_figure(13, 5.6)
    left, right = figure.subplots(1, 2)
    _curves(left, tables.figures["12"], title="Figure 12: synthetic workload", value="cumulative cost")
    queries = len(tables.figures["12"][EXACT])
    left.plot(
        [queries],
        [tables.joint],
        MARKS[JOINT],
        color=COLOURS[JOINT],
        markersize=12,
        label="joint, all at once",
    )
    left.legend(fontsize=8, frameon=False)
    _curves(
        right,
        tables.figures["13"],
        title="Figure 13: airline workload",
        value="cumulative cost (log)",
        log=True,
    )
    return figure


def _figure_14(tables: Tables) -> Figure:
    figure = new_figure(9, 4.8)
    axis = figure.subplots()
    labels = [one.label.replace(", ", "\n") for one in tables.operators]
    x = np.arange(len(labels), dtype=np.float64)
    for shift, name, colour in ((-0.2, "joins", "#0072B2"), (0.2, "filters", "#E69F00")):
        heights = [getattr(one, name) for one in tables.operators]
        bars = axis.bar(x + shift, heights, 0.4, color=colour, label=name)
        axis.bar_label(bars, [f"{height:,.0f}" for height in heights], fontsize=8, padding=2)
    queries = len(tables.figures["13"][EXACT])
    title = f"Figure 14: operators that run after {queries} queries, airline workload"
    _finish(axis, title, "", "operators", log=False)
    axis.set_xticks(x, labels, fontsize=8)
    return figure


def _figure_15(tables: Tables) -> Figure:
    figure = new_figure(8, 5.2)
    axis = figure.subplots()
    lines = tables.network_sizes
    for planner in (TOP_DOWN, BOTTOM_UP, NPC):
        mine = [one for one in lines if one.planner == planner]
        _sizes(axis, mine, [one.plans for one in mine], planner, planner, "-")
    mine = [one for one in lines if one.planner == TOP_DOWN]
    _sizes(axis, mine, [one.bound or 0.0 for one in mine], "Theorems 2 and 4", TOP_DOWN, ":")
    _sizes(axis, mine, [one.exhaustive for one in mine], "exhaustive (Lemma 1)", RELAXATION, "--")
    title = "Figure 15: plans compared for one query over four streams, max_cs 32"
    _finish(axis, title, "sites", "plans (log)", log=True)
    axis.set_xscale("log")
    axis.set_xticks([one.sites for one in mine], [f"{one.sites:,}" for one in mine])
    axis.minorticks_off()
    return figure


def _sizes(
    axis: Axes, lines: Sequence[NetworkSize], values: Sequence[float], label: str, like: str, style: str
) -> None:
    sites = [one.sites for one in lines]
    axis.plot(sites, values, style, marker=MARKS[like], color=COLOURS[like], label=label)


def _figure_16(tables: Tables) -> Figure:
    figure = new_figure(9, 4.8)
    axis = figure.subplots()
    times = tables.planning_times
    runs = list(dict.fromkeys((one.planner, one.max_cs) for one in times))
    sizes = sorted({one.streams for one in times})
    width = 0.8 / len(runs)
    for number, (planner, max_cs) in enumerate(runs):
        mine = {one.streams: one.median for one in times if (one.planner, one.max_cs) == (planner, max_cs)}
        at = np.array([i for i, size in enumerate(sizes) if size in mine]) + width * (
            number - (len(runs) - 1) / 2
        )
        label = f"{planner}, max_cs {max_cs}" if max_cs else planner
        # The larger the clusters, the darker.
        alpha = {4: 0.4, 8: 0.7}.get(max_cs, 1.0)
        axis.bar(at, list(mine.values()), width, color=COLOURS[planner], alpha=alpha, label=label)
    _finish(axis, "Figure 16, planning alone: 32 sites", "streams of the query", "median milliseconds", False)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.1f}")
    axis.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axis.legend(fontsize=8, frameon=False, ncols=2)
    return figure


def _rates(tables: Tables) -> Figure:
    """The two workloads that are judged, and beside them the other rate models, on a scale of their own."""
    figure = new_figure(12, 4.8)
    left, right = figure.subplots(1, 2)
    _bars_above(left, tables, (SYNTHETIC.name, AIRLINE.name))
    _bars_above(right, tables, tuple(part.name for part in OTHER_MODELS))
    left.set_title("Figures 12 and 13 at the end", loc="left", fontsize=10)
    right.set_title("The synthetic workload with other rates", loc="left", fontsize=10)
    left.legend(fontsize=8, frameon=False, ncols=2)
    figure.suptitle(
        f"Cost above the exact planner's, mean over {tables.seeds} seeds; error bars: one standard deviation",
        fontsize=11,
    )
    return figure


def _bars_above(axis: Axes, tables: Tables, parts: Sequence[str]) -> None:
    planners = [name for name in dict.fromkeys(one.planner for one in tables.above) if name != EXACT]
    width = 0.8 / len(planners)
    for number, planner in enumerate(planners):
        mine = [one for one in tables.above if one.planner == planner and one.part in parts]
        x = np.array([parts.index(one.part) for one in mine]) + width * (number - (len(planners) - 1) / 2)
        means, spread = [one.mean for one in mine], [one.deviation for one in mine]
        error = {"elinewidth": 0.8, "ecolor": "#333333"}
        axis.bar(
            x, means, width, yerr=spread, color=COLOURS[planner], label=planner, capsize=2, error_kw=error
        )
    axis.axhline(0, color="#333333", linewidth=0.8)
    axis.set_ylabel("%")
    axis.set_xticks(range(len(parts)), [_rates_of(part) for part in parts])
    axis.spines[["top", "right"]].set_visible(False)


def _rates_of(part: str) -> str:
    return {"synthetic": "synthetic (steady)"}.get(part, part)
