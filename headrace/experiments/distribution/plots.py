"""Figures 21 to 39 as PNG and SVG, with ours beside the paper's patterns and policies. What was measured and
what the model says are never in one panel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.experiments.canvas import new_figure, save
from headrace.experiments.distribution.cases import (
    GROUPING,
    JOINS,
    LABELS,
    MINUTES,
    OFF,
    ONE_SITE,
    OURS,
    PATTERNS,
    PLANS,
    POLICIES,
    ROUND_ROBIN,
    SITES,
)
from headrace.experiments.distribution.tables import Run, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PREFIX = "distribution-fig"
COLOURS = {ROUND_ROBIN: "#D55E00", GROUPING: "#0072B2", OURS: "#009E73"}
"""Okabe and Ito's: told apart with any colour vision."""
POLICY_COLOURS = {OFF: "#777777", "balance": "#0072B2", "degradation": "#D55E00", "pays": "#009E73"}
POLICY_LABELS = {"pays": "pays (ours)"}
MARKS = {ROUND_ROBIN: "X", GROUPING: "s", OURS: "o"}
RECOVERY = {("good", OFF): "#0072B2", ("bad", OFF): "#777777", ("bad", "pays"): "#009E73"}
RECOVERY_LABELS = {
    ("good", OFF): "good placement",
    ("bad", OFF): "all at one site",
    ("bad", "pays"): "the same, redistributed",
}


def draw(tables: Tables, folder: Path) -> list[Path]:
    made = {
        "21-28": _throughputs(tables),
        "29-33": _connections(tables),
        "37-39": _redistribution(tables),
    }
    measured = {"21-31-measured": _measured, "36": _moved, "37-measured": _recovered}
    made |= {name: measured[name](tables) for name in sorted(tables.pictured)}
    return [path for name, figure in made.items() for path in save(figure, folder, PREFIX + name)]


def _throughputs(tables: Tables) -> Figure:
    figure = new_figure(13, 5.6)
    axes = list(figure.subplots(2, 3).flat)
    for axis, plan in zip(axes, PLANS, strict=False):
        for pattern in PATTERNS:
            found = [tables.placement(plan, n, pattern).capacity for n in SITES]
            _line(axis, pattern, SITES, found)
        _finish(axis, f"{_plan(plan)} (model)", "sites", "rows/s of each stream")
    last = axes[len(PLANS)]
    for pattern in PATTERNS:
        found = [tables.placement("80", n, pattern).state / 1e3 for n in SITES]
        _line(last, pattern, SITES, found)
    _finish(last, "80 operators: state at the fullest site (model)", "sites", "thousand rows")
    return figure


def _connections(tables: Tables) -> Figure:
    figure = new_figure(13, 5.6)
    axes = figure.subplots(2, 4)
    for column, plan in enumerate(("5", "20", "40", "80")):
        for pattern in PATTERNS:
            found = [tables.placement(plan, n, pattern) for n in SITES]
            _line(axes[0][column], pattern, SITES, [one.connections for one in found])
            _line(axes[1][column], pattern, SITES, [one.max_load for one in found])
        _finish(axes[0][column], _plan(plan), "sites", "connections")
        _finish(axes[1][column], "", "sites", "cores of the fullest site (model)")
    return figure


def _redistribution(tables: Tables) -> Figure:
    """Minutes of input that are done, by minute: what is missing to the diagonal waits."""
    panels = (
        ("20", 3, ROUND_ROBIN, "Figure 37"),
        ("40", 2, ROUND_ROBIN, "Figure 38"),
        ("40", 2, GROUPING, "Figure 38"),
        ("40", 3, ROUND_ROBIN, "Figure 39"),
        ("40", 3, GROUPING, "Figure 39"),
        ("80", 5, ONE_SITE, "not in the paper"),
    )
    figure = new_figure(13, 6)
    for axis, (plan, sites, start, name) in zip(figure.subplots(2, 3).flat, panels, strict=True):
        axis.plot([0, MINUTES], [0, MINUTES], ":", color="#555555", linewidth=1, label="what comes in")
        for policy in POLICIES:
            done = tables.policy(plan, sites, start, policy).done
            label = POLICY_LABELS.get(policy, policy)
            style = "--" if policy == OFF else "-"
            axis.plot(
                range(MINUTES + 1),
                [0, *done],
                style,
                color=POLICY_COLOURS[policy],
                label=label,
                linewidth=1.6,
            )
        title = f"{name}: {plan} operators, {sites} sites, from {LABELS.get(start, start)} (model)"
        _finish(axis, title, "minutes", "minutes of input done")
    return figure


def _measured(tables: Tables) -> Figure:
    """What sites took, stacked by site, and what the prices say."""
    runs = [run for run in tables.runs if not run.problem]
    plans = [plan for plan in PLANS if any(run.plan == plan for run in runs)]
    figure = new_figure(13, 3.6)
    widths = [max(2, sum(run.plan == plan for run in runs)) for plan in plans]
    axes = figure.subplots(1, len(plans), squeeze=False, width_ratios=widths)[0]
    for axis, plan in zip(axes, plans, strict=True):
        own = [run for run in runs if run.plan == plan]
        _stacked(axis, own)
        _finish(axis, f"{_plan(plan)}, measured", "", "cores taken by all sites", legend=False)
    axes[-1].legend(fontsize=7, frameon=False)
    return figure


def _stacked(axis: Axes, runs: Sequence[Run]) -> None:
    names = [_short(run) for run in runs]
    for place, run in enumerate(runs):
        bottom = 0.0
        for number, cores in enumerate(run.cores):
            shade = 0.95 - 0.15 * number
            axis.bar(
                place, cores, bottom=bottom, color=_colour(run), alpha=shade, edgecolor="white", width=0.7
            )
            bottom += cores
        text = f"{run.jobs} {'job' if run.jobs == 1 else 'jobs'}\n{run.kept_up:.0%}"
        axis.annotate(text, (place, bottom), ha="center", va="bottom", fontsize=6.5)
    places = list(range(len(runs)))
    axis.plot(places, [run.believed for run in runs], "k_", markersize=16, label="by the fitted prices")
    axis.set_xticks(places, names)
    axis.margins(y=0.2)


def _colour(run: Run) -> str:
    return "#999999" if run.sites == 1 else COLOURS[run.patterns[0]]


def _short(run: Run) -> str:
    names = "\n".join(LABELS[pattern].replace("round robin", "round r.") for pattern in run.patterns)
    return "1 site" if run.sites == 1 else f"{run.sites} sites\n{names}"


def _moved(tables: Tables) -> Figure:
    figure = new_figure(7, 3.4)
    axis = figure.subplots()
    for one, colour, label in (
        (tables.still(), "#777777", "the join stays"),
        (tables.moving(), "#009E73", "the join is moved"),
    ):
        if one is not None:
            seconds, rows = zip(*one.curve, strict=True)
            axis.plot(seconds, [row / 1e3 for row in rows], color=colour, label=label, linewidth=1.6)
            for at in one.at:
                axis.axvline(at, color=colour, linewidth=0.7, linestyle=":")
    _finish(axis, "Figure 36: Query Plan 2, window of 20 s, two sites (measured)", "seconds", "thousand rows")
    return figure


def _recovered(tables: Tables) -> Figure:
    figure = new_figure(7, 3.4)
    axis = figure.subplots()
    for (start, policy), colour in RECOVERY.items():
        one = tables.recovery(start, policy)
        if one is None:
            continue
        seconds, rows = zip(*one.curve, strict=True)
        label = RECOVERY_LABELS[start, policy]
        axis.plot(seconds, [row / 1e3 for row in rows], color=colour, label=label, linewidth=1.6)
        if one.moves:
            axis.axvline(one.at, color=colour, linewidth=0.8, linestyle=":")
    rate = tables.recovered[0].rate
    title = f"20 operators, two sites of a core each, {rate:,.0f} rows/s of each stream (measured)"
    _finish(axis, title, "seconds", "thousand rows given")
    return figure


def _plan(plan: str) -> str:
    return "five joins in a row" if plan == JOINS else f"{plan} operators"


def _line(axis: Axes, pattern: str, x: Sequence[float], y: Sequence[float]) -> None:
    axis.plot(
        x, y, color=COLOURS[pattern], marker=MARKS[pattern], markersize=5, label=LABELS[pattern], alpha=0.85
    )


def _finish(axis: Axes, title: str, x: str, y: str, *, legend: bool = True) -> None:
    axis.set_ylim(bottom=0)
    if x == "sites":
        axis.set_xticks(SITES)
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.set_title(title, loc="left", fontsize=8.5)
    axis.tick_params(labelsize=7)
    axis.grid(axis="y", linewidth=0.4, alpha=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    if legend:
        axis.legend(fontsize=7, frameon=False)
