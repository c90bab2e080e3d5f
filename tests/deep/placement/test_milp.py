"""The exact joint programme against every deployment there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.errors import NotSupported, UserError
from headrace.planners.placement.milp import joint_optimum
from headrace.planners.placement.problem import BaseStream, Filter, Network, PlacementProblem, Query
from tests.unit.planners.placement.tiny_placement import cheapest_of_all, prepared_of, tiny


@pytest.mark.parametrize("seed", range(8))
def test_equals_the_cheapest_of_all_deployments(seed: int) -> None:
    problem = tiny(seed, sites=2 + seed % 2, one_way=seed % 3 == 0)
    if seed % 4 == 1:
        problem = replace(problem, forbidden=frozenset({0}))
    assert joint_optimum(problem, prepared_of(problem)).cost == pytest.approx(cheapest_of_all(problem))


def test_no_order_of_deployment_is_better_than_another() -> None:
    problem = tiny(3, queries=2, sites=2)
    optimum = joint_optimum(problem, prepared_of(problem)).cost
    assert cheapest_of_all(problem, all_orders=True) == pytest.approx(optimum)


def test_three_queries() -> None:
    problem = tiny(5, queries=3, streams=3, sites=2)
    assert joint_optimum(problem, prepared_of(problem)).cost == pytest.approx(cheapest_of_all(problem))


def test_without_reuse_queries_are_alone() -> None:
    problem = replace(tiny(1, sites=2), reuse=False)
    assert joint_optimum(problem, prepared_of(problem)).cost == pytest.approx(cheapest_of_all(problem))


def test_a_join_is_shared_where_both_gain() -> None:
    """a and b meet at 1, halfway; the result is small and goes on to both sinks."""
    network = Network((0, 1, 2, 3), ((0, 1, 1.0), (1, 2, 1.0), (1, 3, 1.0)))
    streams = {"a": BaseStream("a", 0, 10.0), "b": BaseStream("b", 0, 10.0)}
    queries = (Query("x", ("a", "b"), 2), Query("y", ("a", "b"), 3))
    problem = PlacementProblem(network, streams, {frozenset("ab"): 0.01}, queries)
    found = joint_optimum(problem, prepared_of(problem))
    assert found.operators == ((frozenset("ab"), 0),)
    assert found.cost == pytest.approx(2 * 2 * 1.0)


def test_relaxed_is_no_more() -> None:
    for seed in range(5):
        problem = tiny(seed, queries=3, streams=4, sites=3)
        prepared = prepared_of(problem)
        relaxed = joint_optimum(problem, prepared, relaxed=True).cost
        assert relaxed <= joint_optimum(problem, prepared).cost + 1e-9


def test_refusals() -> None:
    problem = tiny(0)
    with pytest.raises(NotSupported):
        joint_optimum(replace(problem, filters={"f": Filter("f", "s0", 0.5)}), prepared_of(problem))
    costs = np.full((2, 2), np.inf)
    cut_off = PlacementProblem(
        Network((0, 1), costs=costs), {"a": BaseStream("a", 0, 1.0)}, {}, (Query("q", ("a",), 1),)
    )
    with pytest.raises(UserError):
        joint_optimum(cut_off, prepared_of(cut_off))
