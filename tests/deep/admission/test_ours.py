"""Our planner on the paper's simulation, and on many random problems with the checker after every query."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headrace.planners.admission.bound import optimistic
from headrace.planners.admission.check import violations
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import Options
from headrace.planners.admission.workload import Setup, paper_problem
from tests.deep.admission.test_ours_small import mixed, run

FEWER = """
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import Options
from headrace.planners.admission.workload import Setup, paper_problem
problem = paper_problem(3, Setup(hosts=10, streams=100, queries=200, bandwidth=50.0))
planner = Ours(problem, Options(), lambda: 0.0)
print([(d.query, d.admitted, d.why, d.moved) for d in map(planner.submit, problem.queries)])
"""


@pytest.mark.parametrize(("bandwidth", "share"), [(1000.0, 1.04), (100.0, 0.98), (50.0, 0.95)])
def test_the_paper_s_simulation(bandwidth: float, share: float) -> None:
    problem = paper_problem(100, Setup(bandwidth=bandwidth))
    planner = Ours(problem, Options(), lambda: 0.0)
    admitted = [query.id for query in problem.queries if planner.submit(query).admitted]
    assert violations(problem, planner.plan, admitted) == []
    assert len(admitted) >= share * optimistic(problem)


@pytest.mark.parametrize("seed", range(100, 120))
def test_plans_hold_whatever_binds(seed: int) -> None:
    run(mixed(seed))


def test_the_order_of_hashes_changes_nothing() -> None:
    """Sets of strings come in another order in every process."""
    said = [
        subprocess.run(
            [sys.executable, "-c", FEWER],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert "binding: " in said[0]
