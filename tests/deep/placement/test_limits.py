"""Limits of sites: against every tree that keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.placement import limits
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.ground import MOST_SITES
from headrace.planners.placement.limits import Limited, loads
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Network,
    Options,
    Placed,
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
    room = {0: 3.0, 1: 4.5}
    problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b", "c"), 0),), cpu=room)
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


def spread_out(streams: int) -> PlacementProblem:
    """Every stream at site 0, and at each of `streams - 1` sites room for one join: one each fits."""
    sites = range(streams - 1)
    network = Network(tuple(sites), tuple((a, b, 1.0) for a, b in combinations(sites, 2)))
    made = {f"t{i}": BaseStream(f"t{i}", 0, 1.0) for i in range(streams)}
    room = dict.fromkeys(sites, 2.0)
    return PlacementProblem(network, made, {}, (Query("q", tuple(made), 0),), cpu=room)


def placed_first(problem: PlacementProblem) -> Placed:
    prepared = prepared_of(problem)
    deployed = Deployed(problem, prepared.distance)
    return Limited(problem, prepared, Options()).place(problem.queries[0], deployed)


def cheapest_fitting(problem: PlacementProblem) -> float:
    """Of the first query, by looking at every tree."""
    query, distance = problem.queries[0], prepared_of(problem).distance
    costs = [
        recompute(problem, [(query.id, tree)], distance)[1][-1]
        for tree in every_tree(problem, frozenset(query.streams), [])
        if fits(problem, read_by(problem, query, tree))
    ]
    return min(costs, default=np.inf)


@pytest.mark.parametrize("streams", [4, 5])
def test_one_join_at_each_site(streams: int) -> None:
    problem = spread_out(streams)
    placed = placed_first(problem)
    assert fits(problem, read_by(problem, problem.queries[0], placed.tree))
    # The first join runs at 0; to each further site what was made and a stream go, and the result comes back.
    assert placed.cost == pytest.approx(2 * streams - 3) and placed.certified
    if streams == 4:
        assert placed.cost == pytest.approx(cheapest_fitting(problem))


@pytest.mark.parametrize("seed", range(30))
def test_the_second_search_finds_the_cheapest_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_PLANS", 1)
    problem = limited(seed)
    best = cheapest_fitting(problem)
    if best == np.inf:
        with pytest.raises(UserError, match="no deployment keeps the limits"):
            placed_first(problem)
    else:
        placed = placed_first(problem)
        assert placed.cost == pytest.approx(best) and placed.certified


@pytest.mark.parametrize("seed", range(30))
def test_what_the_quick_search_finds_fits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for queries of many streams: no labels, only joins put one by one."""
    monkeypatch.setattr(limits, "MOST_PLANS", 1)
    monkeypatch.setattr(limits, "MOST_LABELLED", 0)
    problem = limited(seed)
    best = cheapest_fitting(problem)
    try:
        placed = placed_first(problem)
    except UserError as error:
        # Proven only if it is so.
        assert best == np.inf or "not proven" in error.message
        return
    query = problem.queries[0]
    assert fits(problem, read_by(problem, query, placed.tree))
    assert placed.cost == pytest.approx(
        recompute(problem, [(query.id, placed.tree)], prepared_of(problem).distance)[1][-1]
    )
    assert placed.cost >= best * (1 - 1e-9)
    if placed.certified:
        assert placed.cost == pytest.approx(best)


def test_joins_put_one_by_one_count_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_PLANS", 1)
    monkeypatch.setattr(limits, "MOST_LABELLED", 0)
    problem = spread_out(9)
    placed = placed_first(problem)
    assert fits(problem, read_by(problem, problem.queries[0], placed.tree))


def test_giving_up_is_not_called_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fits, as five joins of two rows have four sites; but with so little work that is not proven."""
    for name in ("MOST_PLANS", "LEAST_PLANS", "QUICK", "COMPLETE"):
        monkeypatch.setattr(limits, name, 1)
    problem = spread_out(6)
    tight = replace(problem, cpu=dict(problem.cpu) | {0: 1.0})
    with pytest.raises(UserError, match="not proven that there is none"):
        placed_first(tight)
    # That each join alone is too much for any site is seen without a search.
    with pytest.raises(UserError, match="no deployment keeps the limits"):
        placed_first(replace(problem, cpu=dict.fromkeys(problem.cpu, 1.0)))


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
def test_limits_are_kept_at_any_scale(scale: float) -> None:
    """Three streams at x, room for two of them there: one of the joins must go next door."""
    network = Network(("x", "y"), ((0, 1, 1.0),))
    streams = {n: BaseStream(n, 0, scale) for n in "abc"}
    pairs = {frozenset(pair): 1 / scale for pair in ("ab", "ac", "bc")}
    problem = PlacementProblem(network, streams, pairs, (Query("q", tuple("abc"), 0),), cpu={0: 2.5 * scale})
    placed = placed_first(problem)
    assert fits(problem, read_by(problem, problem.queries[0], placed.tree))
    assert placed.certified and placed.cost == pytest.approx(cheapest_fitting(problem), rel=1e-9, abs=0.0)


@pytest.mark.parametrize(
    ("cpu", "forbidden", "cost"),
    [
        # Joined next to the sink: the streams go 10 links, the result one.
        ({0: 100.0}, {0, 5, 10}, 11),
        ({0: 1.0, 5: 1.0, 10: 1.0}, set[int](), 11),
        # The nearest site with room is six behind a: 6 + 16 links, and 11 back.
        (dict.fromkeys([*range(21), *range(MOST_SITES + 95, MOST_SITES + 100)], 1.0), set[int](), 33),
    ],
)
def test_large_networks_have_sites_besides_those_of_streams(
    cpu: dict[Site, float], forbidden: set[Site], cost: float
) -> None:
    """A ring too large to look at all of it; streams and sink have no room, the sites between them have."""
    size = MOST_SITES + 100
    network = Network(tuple(range(size)), tuple((i, (i + 1) % size, 1.0) for i in range(size)))
    streams = {"a": BaseStream("a", 0, 1.0), "b": BaseStream("b", 10, 1.0)}
    problem = PlacementProblem(
        network, streams, {}, (Query("q", ("a", "b"), 5),), cpu=cpu, forbidden=frozenset(forbidden)
    )
    placed = placed_first(problem)
    assert placed.cost == pytest.approx(cost) and not placed.certified


def test_large_networks_can_be_full() -> None:
    """No site has room for the only join, which is seen without looking at sites."""
    size = MOST_SITES + 100
    network = Network(tuple(range(size)), tuple((i, i + 1, 1.0) for i in range(size - 1)))
    streams = {"a": BaseStream("a", 0, 2.0), "b": BaseStream("b", 10, 2.0)}
    small = dict.fromkeys(range(size), 3.0)
    problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b"), 5),), cpu=small)
    with pytest.raises(UserError, match="no deployment keeps the limits"):
        placed_first(problem)
    # With room for it at the far end only, it goes there: 2 * 2 rows, and 4 come back.
    far = size - 1
    placed = placed_first(replace(problem, cpu=small | {far: 4.0}))
    assert placed.cost == pytest.approx(2.0 * far + 2.0 * (far - 10) + 4.0 * (far - 5)) and placed.certified


def test_unlooked_sites_are_never_called_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams and sink are full, and no other site is looked at."""
    monkeypatch.setattr(limits, "_likely", lambda *_: set[Site]())
    size = MOST_SITES + 100
    network = Network(tuple(range(size)), tuple((i, i + 1, 1.0) for i in range(size - 1)))
    streams = {"a": BaseStream("a", 0, 2.0), "b": BaseStream("b", 10, 2.0)}
    small = dict.fromkeys((0, 5, 10), 3.0)
    problem = PlacementProblem(network, streams, {}, (Query("q", ("a", "b"), 5),), cpu=small)
    with pytest.raises(UserError, match="not proven that there is none"):
        placed_first(problem)
