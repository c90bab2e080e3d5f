"""The same problem in other units has the same answer: nothing compares a rate with a number of its own."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from headrace.planners.admission.check import violations
from headrace.planners.admission.problem import AdmissionProblem, Options
from headrace.planners.admission.solve import solve
from tests.unit.planners.admission.mixed import mixed


def in_units(problem: AdmissionProblem, factor: float) -> AdmissionProblem:
    """All rates and limits times `factor`."""
    hosts = tuple(
        replace(
            host,
            cpu=host.cpu * factor,
            incoming=host.incoming * factor,
            outgoing=host.outgoing * factor,
            memory=host.memory * factor,
        )
        for host in problem.hosts
    )
    return replace(
        problem,
        hosts=hosts,
        link_bandwidth=problem.link_bandwidth * factor,
        streams={name: replace(base, rate=base.rate * factor) for name, base in problem.streams.items()},
        rates={streams: rate * factor for streams, rate in problem.rates.items()},
    )


@pytest.mark.parametrize("factor", [2.0**-24, 2.0**24])
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
