"""Reasons read off the data: who is best instead, and in which part of the parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.experiments.weaving.board import TIE, Array, Costs, Criterion, at_most
from headrace.experiments.weaving.results import THIRTEEN, Results
from headrace.experiments.weaving.workload import NAMES, TABLE_2, Overlap, workload


def rivals(costs: Costs, name: str, criterion: Criterion) -> str:
    """Who is best where `name` is not."""
    best = costs.best(criterion)
    lost = ~at_most(costs.of(criterion)[name], best)
    if not lost.any():
        return "Nobody beats it."
    wins = {n: int(at_most(costs.of(criterion)[n][lost], best[lost]).sum()) for n in THIRTEEN}
    ranked = sorted((n for n in wins if wins[n]), key=lambda n: -wins[n])[:3]
    told = ", ".join(f"{n} in {wins[n]}" for n in ranked)
    return f"Not best in {int(lost.sum())} of {len(lost)}; best there: {told}."


def spread(costs: Costs, name: str, criterion: Criterion) -> str:
    """The parameter that moves the share of wins most."""
    wins = at_most(costs.of(criterion)[name], costs.best(criterion))
    return strongest(costs, 100.0 * wins.astype(np.float64), "The share", "{:.0f} %")


def where_beaten(costs: Costs, name: str, criterion: Criterion) -> str:
    """The parameter that moves the distance to the best most."""
    mine, best = costs.of(criterion)[name], costs.best(criterion)
    above = np.where(at_most(mine, best), np.nan, 100 * (mine / best - 1))
    return strongest(costs, above, "The distance", "{:.1f} %")


def strongest(costs: Costs, values: Array, what: str, form: str) -> str:
    """The parameter whose values move the mean of `values` most; nothing where none moves it."""
    means = {parameter: _by_value(costs, parameter, values) for parameter in NAMES}
    moves = {p: max(m.values()) - min(m.values()) for p, m in means.items() if m}
    if not moves or max(moves.values()) <= TIE:
        return ""
    most = max(moves, key=lambda p: moves[p])
    told = ", ".join(f"{value}: {form.format(mean)}" for value, mean in means[most].items())
    return f"{what} depends most on {most} ({told})."


def worst_instead(costs: Costs, names: Sequence[str]) -> str:
    """Who is worst on total where none of `names` is."""
    worst = costs.worst("total")
    others = ~at_most(worst, costs.worst("total", names))
    count = {n: int(at_most(worst[others], costs.total[n][others]).sum()) for n in THIRTEEN}
    told = ", ".join(f"{n} in {count[n]}" for n in sorted(count, key=lambda n: -count[n])[:3] if count[n])
    return f"Worst in the other {int(others.sum())}: {told}." if others.any() else ""


def _by_value(costs: Costs, parameter: str, values: Array) -> dict[int | str, float]:
    """Mean of `values` for every value of the parameter; NaN entries and empty groups are left out."""
    found = {}
    for value in TABLE_2[NAMES.index(parameter)]:
        group = values[[case.to_dict()[parameter] == value for case in costs.cases]]
        group = group[~np.isnan(group)]
        if len(group):
            found[value] = float(group.mean())
    return found


def fewer_slides_than_nodes(results: Results, costs: Costs) -> str:
    """With as many nodes as distinct slides, merged classes leave nodes with one tree or none to balance."""
    overlap: Overlap = "real" if results.readings.get("overlap") == "real" else "integer"
    distinct = [len({q.slide for q in workload(case, 0, overlap).queries}) for case in costs.cases]
    few = np.mean([d <= case.nnum for d, case in zip(distinct, costs.cases, strict=True)])
    return f"In {100 * few:.1f} % of the experiments there are no more distinct slides than nodes."
