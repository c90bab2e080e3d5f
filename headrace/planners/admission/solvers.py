"""The solver behind the models: HiGHS, as scipy carries it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from headrace.planners.admission.linear import Floats, LinearModel

GAP = 1e-4
"""Relative distance to the bound at which a plan counts as optimal: what CPLEX calls standard."""


class Status(Enum):
    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    """Out of time with some plan."""
    INFEASIBLE = "infeasible"
    NOTHING = "nothing found"
    """Out of time with none."""


@dataclass(frozen=True)
class Solved:
    status: Status
    values: Floats | None
    """None: no plan."""

    @property
    def proven(self) -> bool:
        return self.status in (Status.OPTIMAL, Status.INFEASIBLE)


def solve(model: LinearModel, until: float, clock: Callable[[], float], gap: float = GAP) -> Solved:
    """The best solution that can be found until then.

    That there is none is believed only when HiGHS says so without its presolve too: with it, 1.12 and 1.15
    call some small models infeasible that have a solution (a test keeps one).
    """
    found = _highs(model, until - clock(), gap, presolve=True)
    if found.status is Status.INFEASIBLE:
        found = _highs(model, until - clock(), gap, presolve=False)
    return found


def _highs(model: LinearModel, seconds: float, gap: float, *, presolve: bool) -> Solved:
    found = milp(
        model.cost,
        integrality=model.whole.astype(np.int64),
        bounds=Bounds(model.lower, model.upper),
        constraints=LinearConstraint(model.rows, model.low, model.high),
        options={"time_limit": max(seconds, 0.0), "mip_rel_gap": gap, "presolve": presolve},
    )
    if found.x is not None:
        return Solved(Status.OPTIMAL if found.status == 0 else Status.FEASIBLE, found.x)
    # 4 stands for all else, here only for "unbounded or infeasible": no cost of ours falls without end.
    return Solved(Status.INFEASIBLE if found.status in (2, 4) else Status.NOTHING, None)
