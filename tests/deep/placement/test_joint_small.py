"""All queries together: valid, never dearer than in turn, and close to the optimum where that is known."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from headrace.errors import NotSupported, UserError
from headrace.planners.placement.joint import solve_joint
from headrace.planners.placement.milp import joint_optimum
from headrace.planners.placement.problem import (
    BaseStream,
    Network,
    Options,
    PlacementPlan,
    PlacementProblem,
    Query,
)
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.solve import solve
from tests.unit.planners.placement.tiny_placement import prepared_of, tiny, with_cuts


def joint(problem: PlacementProblem, **options: float) -> PlacementPlan:
    return solve_joint(problem, prepared_of(problem), Options(**options), time.perf_counter)  # type: ignore[arg-type]


def test_close_to_the_optimum_on_tiny_cases() -> None:
    above = []
    for seed in range(8):
        problem = tiny(seed, queries=3, streams=4, sites=4, one_way=seed % 2 == 0)
        optimum = joint_optimum(problem, prepared_of(problem)).cost
        plan = joint(problem)
        cost = plan.total_cost
        assert plan.lower_bound is not None and 0 < plan.lower_bound <= optimum * (1 + 1e-9)
        assert cost >= optimum * (1 - 1e-9)
        above.append(cost / optimum - 1)
    assert np.mean(above) <= 0.02


@pytest.mark.parametrize("seed", range(6))
def test_a_valid_deployment_and_no_dearer_than_in_turn(seed: int) -> None:
    problem = tiny(seed, queries=8, streams=5, sites=6)
    if seed % 2:
        problem = with_cuts(problem, seed)
    problem = replace(problem, sinks=seed % 3 == 2)
    plan = joint(problem)
    trees = [(one.query, one.tree) for one in plan.queries]
    total, added = recompute(problem, trees, prepared_of(problem).distance)
    assert plan.total_cost == pytest.approx(total)
    assert [one.cost for one in plan.queries] == pytest.approx(added)
    assert sorted(name for name, _ in trees) == sorted(query.id for query in problem.queries)
    if not problem.sinks:
        assert [name for name, _ in trees] == [query.id for query in problem.queries]
    assert total <= solve(problem, "exact", Options(), time.perf_counter).total_cost * (1 + 1e-9)


def test_investing_pays() -> None:
    """Each of three queries alone would join at its own sink; together they join once, near the sources."""
    network = Network((0, 1, 2, 3, 4), ((0, 1, 4.0), (1, 2, 1.0), (1, 3, 1.0), (1, 4, 1.0)))
    streams = {"a": BaseStream("a", 0, 1.0), "b": BaseStream("b", 0, 1.0)}
    queries = tuple(Query(f"q{i}", ("a", "b"), i + 2) for i in range(3))
    # The join is a bit more data than its inputs together.
    problem = PlacementProblem(network, streams, {frozenset("ab"): 2.5}, queries)
    in_turn = solve(problem, "exact", Options(), time.perf_counter).total_cost
    plan = joint(problem)
    assert plan.total_cost == pytest.approx(joint_optimum(problem, prepared_of(problem)).cost)
    assert plan.total_cost < in_turn - 0.1


def test_the_same_again() -> None:
    problem = tiny(4, queries=6, streams=5, sites=6)
    assert joint(problem, seed=3).queries == joint(problem, seed=3).queries


def test_out_of_time_it_is_planned_in_turn() -> None:
    problem = tiny(4, queries=6, streams=5, sites=6)
    in_turn = solve(problem, "exact", Options(), time.perf_counter).total_cost
    plan = joint(problem, seconds=0.0)
    assert plan.notes["stirs"] == "0"
    assert plan.total_cost == pytest.approx(in_turn)


def test_one_stream_and_no_query() -> None:
    problem = tiny(1)
    lone = replace(problem, queries=(Query("q", ("s1",), 2),))
    expected = problem.streams["s1"].rate * prepared_of(problem).distance(problem.streams["s1"].site, 2)
    assert joint(lone).total_cost == pytest.approx(expected)
    assert joint(replace(problem, queries=())).total_cost == 0


def test_says_which_stream_is_cut_off() -> None:
    network = Network((0, 1, 2), ((1, 2, 1.0),))
    streams = {"a": BaseStream("a", 0, 1.0), "b": BaseStream("b", 1, 1.0)}
    problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b"), 2),))
    with pytest.raises(UserError, match="stream a cannot reach"):
        joint(problem)


def test_refuses_limits() -> None:
    with pytest.raises(NotSupported, match="cpu"):
        joint(replace(tiny(1), cpu={0: 1.0}))
