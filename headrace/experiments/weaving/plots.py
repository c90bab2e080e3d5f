"""Figures 2 and 3 as PNG and SVG. matplotlib is imported where it is used: it takes a second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.experiments.canvas import new_figure, save
from headrace.experiments.weaving.board import Criterion
from headrace.experiments.weaving.results import THIRTEEN, THREE
from headrace.experiments.weaving.tables import Quality, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"G": "#E69F00", "W": "#56B4E9", "WG": "#0072B2", "ours": "#009E73"}
"""Okabe and Ito's: told apart with any colour vision."""
FAMILIES = {"G": "group only", "W": "weave only", "WG": "weave and group", "ours": "ours"}
NODE_SHADES = ("#08306b", "#2171b5", "#6baed6", "#c6dbef")
_PANELS: tuple[tuple[Criterion, str], ...] = (("max", "(a) max cost"), ("total", "(b) total cost"))


def draw(tables: Tables, folder: Path) -> list[Path]:
    """Write the figures; Figure 3 only where Experiment 2 was run."""
    made = save(draw_figure_2(tables), folder, "fig2")
    if tables.figure_3:
        made += save(draw_figure_3(tables), folder, "fig3")
    return made


def family(name: str) -> str:
    return "ours" if name in THREE else name.split("_")[0]


def draw_figure_2(tables: Tables) -> Figure:
    figure = new_figure(11, 8.4)
    axes = figure.subplots(2, 1)
    for axis, (criterion, title) in zip(axes, _PANELS, strict=True):
        _quality_bars(axis, tables.figure_2[criterion], title)
    figure.suptitle(
        f"Average plan quality over {tables.experiments} experiments (lower is better)\n"
        "0 % is the best and 100 % the worst of the thirteen in each experiment; "
        "error bars: one standard deviation",
        fontsize=11,
    )
    _family_legend(axes[0])
    return figure


def _quality_bars(axis: Axes, bars: Mapping[str, Quality], title: str) -> None:
    names = (*THIRTEEN, *THREE)
    x = np.arange(len(names), dtype=np.float64)
    x[len(THIRTEEN) :] += 0.6
    means = [bars[name].mean for name in names]
    spread = [bars[name].deviation for name in names]
    colours = [COLOURS[family(name)] for name in names]
    error = {"elinewidth": 1.0, "ecolor": "#333333"}
    axis.bar(x, means, yerr=spread, capsize=3, color=colours, width=0.75, error_kw=error)
    for at, mean, deviation in zip(x, means, spread, strict=True):
        place = (at, max(mean + deviation, 0))
        words = f"{mean:.1f}" if abs(mean) < 10 else f"{mean:.0f}"
        axis.annotate(words, place, (0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=8)
    axis.axhline(0, color="#333333", linewidth=0.8)
    axis.set_xticks(x, [_wrapped(name) for name in names], fontsize=8)
    axis.set_ylabel("distance to the best, %")
    axis.set_title(title, loc="left", fontsize=10)
    axis.margins(x=0.02, y=0.14)
    axis.spines[["top", "right"]].set_visible(False)


def _wrapped(name: str) -> str:
    return name.replace(", ", "\n")


def _family_legend(axis: Axes) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=COLOURS[key], label=label) for key, label in FAMILIES.items()]
    axis.legend(handles=handles, ncols=4, fontsize=8, frameon=False, loc="lower right", bbox_to_anchor=(1, 1))


def draw_figure_3(tables: Tables) -> Figure:
    """Bars of the four nodes side by side, the dearest first."""
    figure = new_figure(12, 5)
    axis = figure.subplots()
    names = list(tables.figure_3)
    costs = np.array([tables.figure_3[name] for name in names])
    x = np.arange(len(names), dtype=np.float64)
    for node, shade in zip(range(costs.shape[1]), NODE_SHADES, strict=True):
        label = ("dearest node", "second", "third", "cheapest node")[node]
        axis.bar(x + 0.2 * (node - 1.5), costs[:, node], 0.2, color=shade, label=label)
    axis.hlines(
        costs.mean(axis=1), x - 0.45, x + 0.45, color="#D55E00", linewidth=1.5, label="mean (total / 4)"
    )
    for at, nodes in zip(x, costs, strict=True):
        words = f"{nodes.sum():,.0f}"
        axis.annotate(words, (at, nodes.max()), (0, 4), textcoords="offset points", ha="center", fontsize=8)
    axis.set_xticks(x, [_wrapped(name) for name in names], fontsize=8)
    axis.margins(x=0.02)
    axis.set_ylabel("node cost, aggregate operations per time unit")
    axis.legend(ncols=5, fontsize=8, frameon=False, loc="upper right")
    axis.set_title(
        "Costs per node in a 4-node system (Experiment 2); numbers: total cost", loc="left", fontsize=11
    )
    axis.spines[["top", "right"]].set_visible(False)
    return figure
