"""The bound against the exact joint optimum."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import NotSupported
from headrace.planners.placement.lower_bound import lower_bound, on_simplex
from headrace.planners.placement.milp import joint_optimum
from headrace.planners.placement.problem import Options, PlacementProblem
from headrace.planners.placement.solve import solve
from tests.unit.planners.placement.tiny_placement import prepared_of, tiny


def bound(problem: PlacementProblem, reachable: float, rounds: int = 40) -> float:
    return lower_bound(problem, prepared_of(problem), reachable, rounds=rounds).value


def test_never_above_the_optimum_and_close_to_it() -> None:
    tight = []
    for seed in range(8):
        problem = tiny(seed, queries=3, streams=4, sites=4, one_way=seed % 2 == 1)
        if seed % 5 == 0:
            problem = replace(problem, forbidden=frozenset({0}))
        optimum = joint_optimum(problem, prepared_of(problem)).cost
        # The target only steers: a wrong one must not make a wrong bound.
        value = bound(problem, optimum * (1.0 if seed % 3 else 1.5))
        assert value <= optimum * (1 + 1e-9)
        tight.append(value / optimum)
    assert np.mean(tight) > 0.9


@pytest.mark.parametrize("seed", range(6))
def test_exact_for_one_query_and_without_reuse(seed: int) -> None:
    problem = replace(tiny(seed, queries=3, streams=4, sites=5), reuse=False)
    exact = solve(problem, "exact", Options(), time.perf_counter).total_cost
    assert bound(problem, exact, rounds=1) == pytest.approx(exact)
    alone = replace(problem, queries=problem.queries[:1], reuse=True)
    exact = solve(alone, "exact", Options(), time.perf_counter).total_cost
    assert bound(alone, exact, rounds=1) == pytest.approx(exact)


def test_moving_shares_helps() -> None:
    problem = tiny(2, queries=6, streams=4, sites=5)
    upper = solve(problem, "exact", Options(), time.perf_counter).total_cost
    found = lower_bound(problem, prepared_of(problem), upper, rounds=60)
    assert found.equal_shares < found.value <= upper


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.integers(0, 1000))
def test_the_projection_is_the_nearest_point(point: list[float], seed: int) -> None:
    here = np.array(point)
    found = on_simplex(np.stack([here, here + 1], axis=1))
    assert found[:, 0] == pytest.approx(found[:, 1])
    found = found[:, 0]
    assert found.min() >= 0 and found.sum() == pytest.approx(1)
    other = np.random.default_rng(seed).dirichlet(np.ones(len(point)))
    assert ((found - here) ** 2).sum() <= ((other - here) ** 2).sum() + 1e-9


def test_refuses_sinks() -> None:
    problem = replace(tiny(0), sinks=True)
    with pytest.raises(NotSupported):
        bound(problem, 1.0)
