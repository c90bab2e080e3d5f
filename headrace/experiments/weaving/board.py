"""Rows of results as arrays: one entry a case, one array an optimiser.

A case is an experiment, its costs averaged over the repeats first (as the paper does), or a single workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headrace.experiments.weaving.results import MAIN, OURS_FRONT, THIRTEEN, THREE, Results, Row
from headrace.experiments.weaving.workload import Parameters

Array = NDArray[np.float64]
Criterion = Literal["total", "max"]
CRITERIA: tuple[Criterion, ...] = ("total", "max")

TIE = 1e-9
"""Costs within this relative distance are the same cost."""


@dataclass(frozen=True)
class Costs:
    cases: tuple[Parameters, ...]
    total: Mapping[str, Array]
    max: Mapping[str, Array]

    def of(self, criterion: Criterion) -> Mapping[str, Array]:
        return self.total if criterion == "total" else self.max

    def best(self, criterion: Criterion, among: Sequence[str] = THIRTEEN) -> Array:
        return np.asarray(np.min([self.of(criterion)[name] for name in among], axis=0), dtype=np.float64)

    def worst(self, criterion: Criterion, among: Sequence[str] = THIRTEEN) -> Array:
        return np.asarray(np.max([self.of(criterion)[name] for name in among], axis=0), dtype=np.float64)

    def but(self, other: Costs) -> Costs:
        """These costs, with the optimisers that `other` knows replaced by its."""
        return Costs(self.cases, {**self.total, **other.total}, {**self.max, **other.max})


def at_most(one: Array, other: Array) -> NDArray[np.bool_]:
    return np.asarray(one <= other * (1 + TIE), dtype=np.bool_)


def workload_costs(results: Results, reading: str = MAIN, repeat: int | None = None) -> Costs:
    """One case a workload; of one repeat only where it is given."""
    rows = [r for r in results.rows if r.reading == reading and repeat in (None, r.repeat)]
    cases = sorted({(r.repeat, r.parameters) for r in rows})
    at = {case: i for i, case in enumerate(cases)}
    total = {r.optimiser: np.zeros(len(cases)) for r in rows}
    peak = {r.optimiser: np.zeros(len(cases)) for r in rows}
    for row in rows:
        total[row.optimiser][at[row.repeat, row.parameters]] = row.total
        peak[row.optimiser][at[row.repeat, row.parameters]] = row.max
    return Costs(tuple(parameters for _, parameters in cases), total, peak)


def averaged(costs: Costs) -> Costs:
    """One case an experiment: the mean of its repeats, which follow each other in the same order."""
    experiments = len(set(costs.cases))

    def mean(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {name: array.reshape(-1, experiments).mean(axis=0) for name, array in arrays.items()}

    return Costs(costs.cases[:experiments], mean(costs.total), mean(costs.max))


def front_picks(results: Results, costs: Costs) -> Costs:
    """From every workload's front the plan that comes nearest to the best of the thirteen on both costs at
    once (the smallest larger ratio). It is at or below both bests exactly when some plan of the front is."""
    fronts = {(r.repeat, r.parameters): r for r in results.rows if r.optimiser == OURS_FRONT}
    rows = [fronts[case] for case in sorted(fronts)]
    bests = zip(costs.best("total"), costs.best("max"), strict=True)
    picks = np.array([_pick(row, *best) for row, best in zip(rows, bests, strict=True)])
    return Costs(costs.cases, {OURS_FRONT: picks[:, 0]}, {OURS_FRONT: picks[:, 1]})


def _pick(row: Row, total: float, peak: float) -> tuple[float, float]:
    points = row.front or ((row.total, row.max),)
    return min(points, key=lambda point: max(point[0] / total, point[1] / peak))


def mean_seconds(results: Results) -> dict[str, tuple[float, float]]:
    """(mean, largest) seconds of every optimiser's search."""
    found = {}
    for name in (*THIRTEEN, *THREE):
        seconds = [r.seconds for r in results.rows if r.optimiser == name and r.reading == MAIN]
        found[name] = (float(np.mean(seconds)), float(np.max(seconds)))
    return found
