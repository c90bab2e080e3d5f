"""Results nobody ran: costs from a seed, or set to show one thing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.experiments.weaving.results import MAIN, OURS_FRONT, THIRTEEN, THREE, Results, Row
from headrace.experiments.weaving.workload import EXPERIMENT_2, Parameters, grid

READINGS = {"stop": "prose", "insert": "prose", "overlap": "integer"}

CostOf = Callable[[int, str, int], tuple[float, float]]
"""(number of the experiment, optimiser, repeat) -> (total, max)."""


def results(cost: CostOf, experiments: int = 20, repeats: int = 2) -> Results:
    """The first of them is Experiment 2, so that Figure 3 has its node costs."""
    chosen = [EXPERIMENT_2, *(p for p in grid() if p != EXPERIMENT_2)][:experiments]
    rows = [
        _row(parameters, repeat, name, *cost(number, name, repeat))
        for repeat in range(repeats)
        for number, parameters in enumerate(chosen)
        for name in (*THIRTEEN, *THREE)
    ]
    return Results(tuple(rows), READINGS, {"date": "2026-11-16", "machine": "none", "seconds": 1.0})


def _row(parameters: Parameters, repeat: int, name: str, total: float, peak: float) -> Row:
    front = ((total, peak), (total * 1.1, peak * 0.8)) if name == OURS_FRONT else ()
    nodes = (peak, *[(total - peak) / 3] * 3) if parameters == EXPERIMENT_2 and name != OURS_FRONT else ()
    return Row(parameters, repeat, name, MAIN, total, peak, 0.001 * (repeat + 1), front, nodes)


def random_costs(seed: int) -> CostOf:
    """Few different values, so that there are ties."""

    def cost(number: int, name: str, repeat: int) -> tuple[float, float]:
        key = [seed, number, repeat, (*THIRTEEN, *THREE).index(name)]
        total, peak = np.random.default_rng(key).integers(1, 6, size=2)
        return 100.0 * float(total) + 400, 10.0 * float(peak) + 40

    return cost


def paper_like(number: int, name: str, repeat: int) -> tuple[float, float]:
    """Costs with exactly Table 3's shares and distances, on 100 experiments."""
    total, peak = 2000.0, 400.0
    if name == "WG_TN":
        total = 1000.0 if number < 90 else 1002.0
        peak = 148.0 if number >= 17 else 100.0
    elif name == "WG_I":
        total = 1000.0 if number < 5 else 1090.0
        peak = 103.0 if number < 20 else 100.0
    elif name == "W_TN":
        total = 1000.0
    elif name == "W_I":
        peak = 100.0
    return total, peak
