"""Exhaustive search and the oracle: how many plans there are, and that both find the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.placement import exhaustive as module
from headrace.planners.placement.brute_force import cheapest, every_tree
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exhaustive import Exhaustive, lemma1
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Leaf,
    Network,
    Options,
    PlacementProblem,
    Query,
    Reused,
)
from headrace.planners.placement.recompute import recompute
from tests.unit.planners.placement.exact_cases import small_problem


def joins(sites: int, streams: int) -> PlacementProblem:
    names = tuple(f"s{i}" for i in range(streams))
    base = {name: BaseStream(name, i % sites, 1.0 + i) for i, name in enumerate(names)}
    links = tuple((a, b, 1.0 + (a * b) % 3) for a, b in combinations(range(sites), 2))
    return PlacementProblem(Network(tuple(range(sites)), links), base, {}, (Query("q", names, 0),))


def examined(problem: PlacementProblem) -> int:
    prepared = prepare(problem.network)
    planner = Exhaustive(problem, prepared, Options())
    return planner.place(problem.queries[0], Deployed(problem, prepared.distance)).plans_examined


def test_lemma_1_gives_the_papers_numbers() -> None:
    assert lemma1(5, 64) == pytest.approx(3.02e9, rel=1e-3)
    assert lemma1(5, 128) == pytest.approx(4.83e10, rel=1e-3)
    assert lemma1(4, 57) == pytest.approx(3.3e6, rel=0.02)
    assert lemma1(2, 9) == 9


def test_a_tree_is_tried_once_at_every_choice_of_sites() -> None:
    """1, 3, 15, 105 trees of 2, 3, 4, 5 streams; Lemma 1 has 1, 3, 18, 180 sequences of joins."""
    for streams, trees in ((2, 1), (3, 3), (4, 15), (5, 105)):
        for sites in (1, 2, 3):
            problem = joins(sites, streams)
            assert examined(problem) == trees * sites ** (streams - 1)
            paths = [[0.0] * sites for _ in range(sites)]
            every = [tree for tree, _ in every_tree(problem, problem.queries[0], [], paths)]
            assert len(every) == len(set(every)) == trees * sites ** (streams - 1)


def test_the_oracle_by_hand() -> None:
    """b (rate 2) goes over the middle site to a (rate 5) for 2 * 3; the result (1) goes to the sink for 7."""
    streams = {"a": BaseStream("a", 0, 5.0), "b": BaseStream("b", 2, 2.0)}
    network = Network((0, 1, 2, 3), ((0, 1, 1.0), (1, 2, 2.0), (0, 2, 9.0), (0, 3, 7.0)))
    problem = PlacementProblem(network, streams, {frozenset("ab"): 0.1}, (Query("q", ("a", "b"), 3),))
    tree, cost = cheapest(problem, problem.queries[0], Deployed(problem, prepare(network).distance))
    assert cost == pytest.approx(13.0)
    assert tree == Join(Leaf("a", 0), Leaf("b", 2), 0)


def test_finds_what_the_oracle_finds() -> None:
    found = 0
    for seed in range(300, 345):
        problem = small_problem(seed)
        prepared = prepare(problem.network)
        planner, deployed = Exhaustive(problem, prepared, Options()), Deployed(problem, prepared.distance)
        trees = []
        for query in problem.queries:
            _, want = cheapest(problem, query, deployed)
            if want == np.inf:
                with pytest.raises(UserError, match=f"query {query.id}: no deployment"):
                    planner.place(query, deployed)
                continue
            placed = planner.place(query, deployed)
            assert placed.cost == pytest.approx(want, rel=1e-9, abs=1e-9)
            deployed.add(query, placed.tree)
            trees.append((query.id, placed.tree))
            total, added = recompute(problem, trees, prepared.distance)
            assert added[-1] == pytest.approx(placed.cost, rel=1e-9, abs=1e-9 * max(1.0, total))
            found += 1
    assert found > 60


def test_placements_in_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = joins(4, 4)
    prepared = prepare(problem.network)
    planner, deployed = Exhaustive(problem, prepared, Options()), Deployed(problem, prepared.distance)
    whole = planner.place(problem.queries[0], deployed)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert planner.place(problem.queries[0], deployed) == whole


def test_too_many_plans_are_refused_with_their_number() -> None:
    with pytest.raises(UserError, match="query q: 85,050,000 plans are too many"):
        examined(joins(30, 5))


def test_a_little_beside_much_is_not_lost() -> None:
    """A query that reuses a join of 1e21 and sends its result, at rate 1, over a link of 3."""
    network = Network((0, 1, 2), ((0, 1, 1e9), (1, 2, 3.0)))
    streams = {
        name: BaseStream(name, i, rate)
        for i, (name, rate) in enumerate({"a": 1e12, "b": 1e12, "c": 10.0}.items())
    }
    queries = (Query("much", ("a", "b"), 1), Query("little", ("a", "b", "c"), 2))
    chances = {frozenset("ab"): 1e-24, frozenset("ac"): 0.1}
    problem = PlacementProblem(network, streams, chances, queries)
    much = Join(Leaf("a", 0), Leaf("b", 1), 1)
    little = Join(Reused(0, "much", frozenset("ab"), 1), Leaf("c", 2), 2)
    _, added = recompute(problem, [("much", much), ("little", little)], prepare(network).distance)
    assert added == pytest.approx([1e21, 3.0])
