"""Limits of sites: against every tree that keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.limits import Limited, loads
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Network,
    Options,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
    streams_of,
    walk,
)
from headrace.planners.placement.rates import data_rate, wanted
from headrace.planners.placement.recompute import recompute
from tests.unit.planners.placement.tiny_placement import every_tree, prepared_of, tiny, with_cuts


def read_by(problem: PlacementProblem, query: Query, tree: Tree) -> dict[Site, float]:
    """What the joins of a tree read at each site, without any other query."""
    found: dict[Site, float] = {}
    holding = wanted(problem, query)
    for node in walk(tree):
        if isinstance(node, Join):
            sides = [data_rate(problem, holding, streams_of(side)) for side in (node.left, node.right)]
            found[node.site] = found.get(node.site, 0.0) + sum(sides)
    return found


def fits(problem: PlacementProblem, used: Mapping[Site, float]) -> bool:
    return all(used.get(site, 0.0) <= limit * (1 + 1e-9) for site, limit in problem.cpu.items())


def limited(seed: int) -> PlacementProblem:
    """Limits around what one or two joins read."""
    problem = tiny(seed, queries=2, streams=3 + seed % 2, sites=3)
    rng = np.random.default_rng(seed)
    rates = sum(stream.rate for stream in problem.streams.values())
    cpu = {site: float(rng.uniform(0.2, 2.0)) * rates for site in range(3) if rng.random() < 0.8}
    return replace(problem, cpu=cpu)


@pytest.mark.parametrize("seed", range(40))
def test_cheapest_that_fits(seed: int) -> None:
    problem = limited(seed)
    prepared = prepared_of(problem)
    planner, deployed = Limited(problem, prepared, Options()), Deployed(problem, prepared.distance)
    before: list[tuple[str, Tree]] = []
    running: list[Reused] = []
    for query in problem.queries:
        used = loads(problem, deployed)
        best = np.inf
        for tree in every_tree(problem, frozenset(query.streams), running):
            more = read_by(problem, query, tree)
            if fits(problem, {s: used.get(s, 0.0) + more.get(s, 0.0) for s in problem.cpu}):
                best = min(best, recompute(problem, [*before, (query.id, tree)], prepared.distance)[1][-1])
        if best == np.inf:
            with pytest.raises(UserError, match="does not fit"):
                planner.place(query, deployed)
            return
        placed = planner.place(query, deployed)
        assert placed.cost == pytest.approx(best)
        assert placed.certified
        deployed.add(query, placed.tree)
        assert fits(problem, loads(problem, deployed))
        before.append((query.id, placed.tree))
        running += [o.as_leaf() for o in deployed.offers(replace(query, streams=tuple(problem.streams)))]


def test_the_cases_above_are_not_all_easy() -> None:
    """Some limits bind, some queries do not fit at all."""
    binding = refused = 0
    for seed in range(40):
        problem = limited(seed)
        prepared = prepared_of(problem)
        deployed = Deployed(problem, prepared.distance)
        free = Exact(problem, prepared, Options()).place(problem.queries[0], deployed).cost
        try:
            cost = Limited(problem, prepared, Options()).place(problem.queries[0], deployed).cost
            binding += cost > free * (1 + 1e-9)
        except UserError:
            refused += 1
    assert binding >= 5 and refused >= 2


def test_two_joins_that_fit_alone_and_not_together() -> None:
    """Both joins want site 1; each reads 2 + something there, and there is room for one."""
    network = Network((0, 1, 2), ((0, 1, 1.0), (1, 2, 5.0)))
    streams = {n: BaseStream(n, 1, 2.0) for n in "abc"}
    pairs = {frozenset("ab"): 0.5, frozenset("ac"): 0.5, frozenset("bc"): 0.5}
    problem = PlacementProblem(network, streams, pairs, (Query("q", ("a", "b", "c"), 1),), cpu={1: 5.0})
    prepared = prepared_of(problem)
    deployed = Deployed(problem, prepared.distance)
    placed = Limited(problem, prepared, Options()).place(problem.queries[0], deployed)
    # One join (4 rows) stays at 1; the other one runs next door at 0, and the result (1 row) comes back:
    # the pair (2) and the third stream (2) go there.
    assert placed.cost == pytest.approx(2 + 2 + 1)
    assert sorted(read_by(problem, problem.queries[0], placed.tree)) == [0, 1]


def test_says_what_is_missing_where() -> None:
    network = Network(("hub",), ())
    streams = {n: BaseStream(n, 0, 2.0) for n in "abc"}
    problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b", "c"), 0),), cpu={0: 7.0})
    prepared = prepared_of(problem)
    with pytest.raises(UserError) as error:
        Limited(problem, prepared, Options()).place(problem.queries[0], Deployed(problem, prepared.distance))
    assert "3 rows" in error.value.detail and "hub" in error.value.detail


def test_says_what_is_missing_where_no_site_is_large_enough() -> None:
    network = Network(("small", "large"), ((0, 1, 1.0),))
    streams = {n: BaseStream(n, 0, 2.0) for n in "abc"}
    limits = {0: 3.0, 1: 4.5}
    problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b", "c"), 0),), cpu=limits)
    prepared = prepared_of(problem)
    with pytest.raises(UserError) as error:
        Limited(problem, prepared, Options()).place(problem.queries[0], Deployed(problem, prepared.distance))
    # Any tree has a join of a pair (4 rows) with a stream (2).
    assert "1.5 rows" in error.value.detail and "large" in error.value.detail


def test_a_wider_reader_loads_the_sites_above() -> None:
    """q0 takes a tenth of a; if q1 read its join, all of a would have to come there: there is no room."""
    for seed in range(12):
        problem = with_cuts(tiny(seed, queries=3, streams=3, sites=3), seed)
        prepared = prepared_of(problem)
        deployed = Deployed(problem, prepared.distance)
        free = Exact(problem, prepared, Options())
        for query in problem.queries[:2]:
            deployed.add(query, free.place(query, deployed).tree)
        tight = replace(problem, cpu={s: load * 1.001 for s, load in loads(problem, deployed).items()})
        try:
            placed = Limited(tight, prepared, Options()).place(problem.queries[2], deployed)
        except UserError:
            continue
        deployed.add(problem.queries[2], placed.tree)
        assert fits(tight, loads(problem, deployed))


def test_without_limits_it_is_exact() -> None:
    for seed in range(5):
        problem = replace(tiny(seed, streams=4, sites=5), cpu={0: 1e9}, forbidden=frozenset({2}))
        prepared = prepared_of(problem)
        deployed = Deployed(problem, prepared.distance)
        for query in problem.queries:
            exact = Exact(problem, prepared, Options()).place(query, deployed)
            assert Limited(problem, prepared, Options()).place(query, deployed).cost == pytest.approx(
                exact.cost
            )
            deployed.add(query, exact.tree)
