"""The same problem in other units has the same answer: nothing compares a rate with a number of its own."""

from __future__ import annotations

import time

import pytest

from headrace.planners.admission.check import violations
from headrace.planners.admission.problem import Options
from headrace.planners.admission.solve import solve
from tests.unit.planners.admission.mixed import mixed
from tests.unit.planners.admission.units import in_units


@pytest.mark.parametrize("factor", [2.0**-35, 2.0**35])
@pytest.mark.parametrize("planner", ["headrace", "heuristic", "soda", "milp"])
def test_the_answer_does_not_depend_on_units(planner: str, factor: float) -> None:
    for seed in range(1 if planner == "milp" else 6):
        problem = mixed(seed, queries=4 if planner == "milp" else 12, most=2 if planner == "milp" else 3)
        scaled = in_units(problem, factor)
        usual = solve(problem, planner, Options(), time.perf_counter)
        other = solve(scaled, planner, Options(), time.perf_counter)
        admitted = [decision.query for decision in other.decisions if decision.admitted]
        assert admitted == [decision.query for decision in usual.decisions if decision.admitted]
        assert violations(scaled, other.plan, admitted) == []
