"""The graph of operators: its total against an independent recomputation, whatever was done to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.ground import Ground
from headrace.planners.placement.joint import in_turn
from headrace.planners.placement.pool import Pool
from headrace.planners.placement.problem import BaseStream, Network, Options, PlacementProblem, Query, Tree
from headrace.planners.placement.recompute import recompute
from headrace.planners.placement.unwound import unwound, wound
from tests.unit.planners.placement.tiny_placement import prepared_of, tiny, with_cuts


def problem_of(seed: int) -> PlacementProblem:
    problem = tiny(seed, queries=5, streams=4, sites=5, one_way=seed % 2 == 1)
    if seed % 3 == 1:
        problem = with_cuts(problem, seed)
    if seed % 5 == 2:
        problem = replace(problem, forbidden=frozenset({1, 3}))
    return replace(problem, sinks=seed % 4 == 3, reuse=seed % 7 != 6)


def recomputed(pool: Pool) -> float:
    prepared = prepared_of(pool.ground.problem)
    return recompute(pool.ground.problem, unwound(pool, prepared), prepared.distance)[0]


@pytest.mark.parametrize("seed", range(24))
def test_total_after_any_moves(seed: int) -> None:
    problem = problem_of(seed)
    rng = np.random.default_rng(seed)
    pool = in_turn(Ground(problem, prepared_of(problem)), range(len(problem.queries)))
    for _ in range(25):
        before = pool.total
        joins = [n for n, one in pool.operators.items() if one.query < 0]
        if joins and rng.random() < 0.5:
            pool.relocate(int(rng.choice(joins)))
        else:
            pool.replan(int(rng.integers(len(problem.queries))))
        assert pool.total <= before * (1 + 1e-9)
        assert pool.total == pytest.approx(recomputed(pool))


@pytest.mark.parametrize("seed", range(12))
def test_in_turn_is_the_exact_planner_query_by_query(seed: int) -> None:
    problem = problem_of(seed)
    prepared = prepared_of(problem)
    pool = Pool(Ground(problem, prepared))
    for i, query in enumerate(problem.queries):
        before = pool.total
        # The exact planner plans against the same deployment, so that ties do not matter later on.
        deployed = _deployed(problem, unwound(pool, prepared))
        cost = Exact(problem, prepared, Options()).place(query, deployed).cost
        pool.replan(i)
        assert pool.total - before == pytest.approx(cost, abs=1e-9 * pool.total)


def _deployed(problem: PlacementProblem, trees: Sequence[tuple[str, Tree]]) -> Deployed:
    queries = {query.id: query for query in problem.queries}
    deployed = Deployed(problem, prepared_of(problem).distance)
    for name, tree in trees:
        deployed.add(queries[name], tree)
    return deployed


@pytest.mark.parametrize("seed", range(12))
def test_wound_up_again_it_is_the_same(seed: int) -> None:
    problem = problem_of(seed)
    prepared = prepared_of(problem)
    ground = Ground(problem, prepared)
    pool = in_turn(ground, range(len(problem.queries)))
    assert wound(ground, unwound(pool, prepared)).total == pytest.approx(pool.total)


def test_a_fork_is_its_own() -> None:
    problem = tiny(2, queries=4, streams=4, sites=5)
    pool = in_turn(Ground(problem, prepared_of(problem)), range(4))
    total, operators = pool.total, len(pool.operators)
    other = pool.fork()
    for query in range(4):
        other.remove(query)
    assert other.total == pytest.approx(0, abs=1e-9) and not other.operators
    assert (pool.total, len(pool.operators)) == (total, operators)
    assert pool.total == pytest.approx(recomputed(pool))


def test_relocating_moves_what_no_reader_can_move_alone() -> None:
    """The first query joins at its own end; two more read it there. Together they want it at the other."""
    links = ((0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 1.0))
    base = tiny(0)
    streams = {"a": BaseStream("a", 2, 1.0), "b": BaseStream("b", 2, 1.0)}
    queries = tuple(Query(f"q{i}", ("a", "b"), sink) for i, sink in enumerate((0, 4, 4)))
    problem = replace(
        base,
        network=Network((0, 1, 2, 3, 4), links),
        streams=streams,
        selectivities={frozenset("ab"): 3.0},
        queries=queries,
    )
    pool = in_turn(Ground(problem, prepared_of(problem)), range(3))
    for number in [n for n, one in pool.operators.items() if one.query < 0]:
        if number in pool.operators:
            pool.relocate(number)
    for query in range(3):
        pool.replan(query)
    # At 0 for one (2 units over 2 links), at 4 for the other two: 8 in all.
    assert pool.total == pytest.approx(8.0)
