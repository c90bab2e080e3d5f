"""Joint planning on the paper's network, and on more tiny cases."""

from __future__ import annotations

import time

import numpy as np
import pytest

from headrace.planners.placement.joint import solve_joint
from headrace.planners.placement.lower_bound import lower_bound
from headrace.planners.placement.milp import joint_optimum
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import Options
from headrace.planners.placement.solve import solve
from headrace.planners.placement.topologies import paper_network
from headrace.planners.placement.workloads import synthetic
from tests.unit.planners.placement.tiny_placement import prepared_of, tiny


@pytest.mark.parametrize("seed", range(2))
def test_well_below_planning_in_turn(seed: int) -> None:
    """The bar is 4 %; a second of search gives far more."""
    network = paper_network(seed)
    problem = synthetic(network, np.random.default_rng(seed))
    plan = solve(problem, "joint", Options(seconds=1.0), time.process_time)
    in_turn = solve(problem, "exact", Options(), time.process_time).total_cost
    assert plan.total_cost <= 0.9 * in_turn
    few = lower_bound(problem, prepare(network), plan.total_cost, rounds=5)
    assert 0 < few.equal_shares <= few.value <= plan.total_cost


def test_within_two_percent_of_the_optimum_on_average() -> None:
    above, tight = [], []
    for seed in range(100, 140):
        problem = tiny(seed, queries=2 + seed % 2, streams=3 + seed % 2, sites=3 + seed % 3)
        prepared = prepared_of(problem)
        optimum = joint_optimum(problem, prepared).cost
        cost = solve_joint(problem, prepared, Options(), time.process_time).total_cost
        bound = lower_bound(problem, prepared, cost, rounds=60).value
        assert bound <= optimum * (1 + 1e-9)
        assert cost >= optimum * (1 - 1e-9)
        above.append(cost / optimum - 1)
        tight.append(bound / optimum)
    assert np.mean(above) <= 0.005
    assert np.mean(tight) >= 0.95
