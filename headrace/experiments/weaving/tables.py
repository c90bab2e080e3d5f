"""The numbers of Tables 3 and 4 and Figures 2 and 3, of ours beside them, and of the other readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from headrace.experiments.weaving.board import (
    CRITERIA,
    Array,
    Costs,
    Criterion,
    at_most,
    averaged,
    front_picks,
    mean_seconds,
    workload_costs,
)
from headrace.experiments.weaving.results import (
    MAIN,
    OURS,
    OURS_BALANCED,
    OURS_FRONT,
    THIRTEEN,
    THREE,
    Results,
)
from headrace.experiments.weaving.workload import EXPERIMENT_2

PAPER_TABLE_3: Mapping[tuple[str, Criterion], tuple[float, float]] = {
    ("WG_I", "max"): (80.0, 3.0),
    ("WG_TN", "max"): (17.0, 48.0),
    ("WG_I", "total"): (5.0, 9.0),
    ("WG_TN", "total"): (90.0, 0.2),
}
"""(best in % of the cases, % above the best on average where not best)."""

PAPER_TABLE_4: Mapping[str, float] = {
    "G_RAND": 0.01, "W_RAND": 2.31, "WG_RAND": 0.02, "G_RR": 0.01, "W_RR": 2.34, "WG_RR": 0.01, "G_TL": 0.01,
    "W_TL": 12.6, "WG_TL": 9.11, "W_TN": 2.95, "WG_TN": 2.83, "W_I": 5.68, "WG_I": 3.94,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One cell pair of Table 3. `above` is over the cases where it is not best; None: it always is."""

    optimiser: str
    criterion: Criterion
    best: float
    above: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """A bar of Figure 2, in %. `pooled`: 0 and 100 % are the mean best and the mean worst cost instead."""

    mean: float
    deviation: float
    pooled: float


@dataclass(frozen=True, slots=True)
class ForkLine:
    """An optimiser under another reading: mean of its cost over its cost as set."""

    reading: str
    optimiser: str
    total: float
    max: float


@dataclass(frozen=True, slots=True)
class Bars:
    """The issue's bars for ours; shares in %, ratios as geometric means."""

    both: float
    """One plan: total <= WG_TN's and max <= WG_I's."""
    both_ours_total: float
    both_ours_max: float
    front: float
    """Some plan of the front: total and max at or below the best of the thirteen."""
    balanced_total: float
    """Balance 1: total over WG_TN's."""
    balanced_max: float
    """Balance 1: max over WG_I's."""


@dataclass(frozen=True)
class Tables:
    experiments: int
    repeats: int
    table_3: tuple[Breakdown, ...]
    table_3_workloads: tuple[Breakdown, ...]
    table_3_ours: tuple[Breakdown, ...]
    everyone: tuple[Breakdown, ...]
    """Table 3's figures for all thirteen."""
    bars: Bars
    bars_workloads: Bars
    seconds: Mapping[str, tuple[float, float]]
    figure_2: Mapping[Criterion, Mapping[str, Quality]]
    figure_3: Mapping[str, tuple[float, ...]]
    forks: tuple[ForkLine, ...]
    table_3_readings: Mapping[str, tuple[Breakdown, ...]]
    checked: int
    check_worst: float


def make_tables(results: Results) -> Tables:
    single = workload_costs(results)
    picked = front_picks(results, single)
    mean = averaged(single)
    mean_picked = averaged(picked)
    checks = [row.check for row in results.rows if row.check is not None]
    return Tables(
        experiments=len(mean.cases),
        repeats=len(single.cases) // len(mean.cases),
        table_3=table_3(mean),
        table_3_workloads=table_3(single),
        table_3_ours=_table_3_ours(mean.but(mean_picked)),
        everyone=tuple(breakdown(mean, name, criterion) for name in THIRTEEN for criterion in CRITERIA),
        bars=_bars(mean, mean_picked),
        bars_workloads=_bars(single, picked),
        seconds=mean_seconds(results),
        figure_2={criterion: figure_2(mean.but(mean_picked), criterion) for criterion in CRITERIA},
        figure_3=figure_3(results),
        forks=_forks(results),
        table_3_readings=_table_3_readings(results),
        checked=len(checks),
        check_worst=max(checks, default=0.0),
    )


def breakdown(costs: Costs, name: str, criterion: Criterion, among: Sequence[str] = THIRTEEN) -> Breakdown:
    mine, best = costs.of(criterion)[name], costs.best(criterion, among)
    wins = at_most(mine, best)
    above = None if wins.all() else percent_above(mine[~wins], best[~wins])
    return Breakdown(name, criterion, 100.0 * float(wins.mean()), above)


def percent_above(mine: Array, best: Array) -> float:
    return 100.0 * float((mine / best - 1).mean())


def table_3(costs: Costs) -> tuple[Breakdown, ...]:
    """In the paper's order of columns."""
    return tuple(breakdown(costs, name, criterion) for name, criterion in PAPER_TABLE_3)


def _table_3_ours(costs: Costs) -> tuple[Breakdown, ...]:
    """The thirteen and our two single plans against each other; the front's pick is judged, no rival."""
    among = (*THIRTEEN, OURS, OURS_BALANCED)
    names = ("WG_I", "WG_TN", OURS, OURS_BALANCED, OURS_FRONT)
    return tuple(breakdown(costs, name, criterion, among) for criterion in ("max", "total") for name in names)


def _bars(costs: Costs, picked: Costs) -> Bars:
    total, peak = costs.total, costs.max
    fine_total, fine_max = at_most(total[OURS], total["WG_TN"]), at_most(peak[OURS], peak["WG_I"])
    front = at_most(picked.total[OURS_FRONT], costs.best("total")) & at_most(
        picked.max[OURS_FRONT], costs.best("max")
    )
    return Bars(
        both=100.0 * float((fine_total & fine_max).mean()),
        both_ours_total=100.0 * float(fine_total.mean()),
        both_ours_max=100.0 * float(fine_max.mean()),
        front=100.0 * float(front.mean()),
        balanced_total=geometric_mean(total[OURS_BALANCED] / total["WG_TN"]),
        balanced_max=geometric_mean(peak[OURS_BALANCED] / peak["WG_I"]),
    )


def geometric_mean(ratios: Array) -> float:
    return float(np.exp(np.log(ratios).mean()))


def figure_2(costs: Costs, criterion: Criterion) -> dict[str, Quality]:
    """The scale is the thirteen's; ours may lie below 0 %. Where all cost the same, a case says nothing."""
    best, worst = costs.best(criterion), costs.worst(criterion)
    tells = worst > best
    if not tells.any():
        return dict.fromkeys((*THIRTEEN, *THREE), Quality(0.0, 0.0, 0.0))
    low, high = float(best.mean()), float(worst.mean())
    found = {}
    for name in (*THIRTEEN, *THREE):
        mine = costs.of(criterion)[name]
        scaled = 100.0 * (mine[tells] - best[tells]) / (worst[tells] - best[tells])
        pooled = 100.0 * (float(mine.mean()) - low) / (high - low)
        found[name] = Quality(float(scaled.mean()), float(scaled.std()), pooled)
    return found


def figure_3(results: Results) -> dict[str, tuple[float, ...]]:
    """Node costs in Experiment 2, the dearest node first, averaged over the repeats."""
    found = {}
    for name in (*THIRTEEN, OURS, OURS_BALANCED):
        rows = [r for r in results.rows if r.parameters == EXPERIMENT_2 and r.optimiser == name]
        nodes = [sorted(r.nodes, reverse=True) for r in rows if r.reading == MAIN and r.nodes]
        if nodes:
            found[name] = tuple(float(cost) for cost in np.mean(nodes, axis=0))
    return found


def fork_costs(results: Results) -> dict[str, Costs]:
    """The other readings, on the first repeat; each knows only the optimisers it touches."""
    names = dict.fromkeys(row.reading for row in results.rows if row.reading != MAIN)
    return {name: workload_costs(results, name, repeat=0) for name in names}


def _forks(results: Results) -> tuple[ForkLine, ...]:
    base = workload_costs(results, repeat=0)
    return tuple(
        ForkLine(
            reading,
            name,
            float((costs.total[name] / base.total[name]).mean()),
            float((costs.max[name] / base.max[name]).mean()),
        )
        for reading, costs in fork_costs(results).items()
        for name in costs.total
    )


def _table_3_readings(results: Results) -> dict[str, tuple[Breakdown, ...]]:
    """Table 3 on the first repeat under every reading; stop rules and insertions touch different optimisers,
    so that their combinations need no further runs."""
    forks = fork_costs(results)
    as_set = workload_costs(results, repeat=0)
    found = {MAIN: as_set}
    for reading, costs in forks.items():
        base = as_set.but(forks["preprocess"]) if reading.startswith("preprocess, ") else as_set
        found[reading] = base.but(costs)
    for before, (stop, insert) in product(("", "preprocess, "), product(forks, forks)):
        if stop.startswith(f"{before}stop=") and insert.startswith(f"{before}insert="):
            found[f"{stop}, {insert.removeprefix(before)}"] = found[stop].but(forks[insert])
    return {reading: table_3(costs) for reading, costs in found.items()}
