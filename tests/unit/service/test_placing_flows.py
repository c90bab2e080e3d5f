"""Edges and paths of random deployments, against `recompute` and networkx."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest

from headrace.errors import InternalError
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Filter,
    Join,
    Leaf,
    Network,
    Placed,
    PlacementProblem,
    Query,
    Reused,
    Tree,
    streams_of,
    walk,
)
from headrace.planners.placement.recompute import recompute
from headrace.service.placing_flows import Paths, flows_of

NAMES = ("a", "b", "c", "d")


def _problem(rng: random.Random, *, sinks: bool) -> PlacementProblem:
    size = rng.randint(3, 6)
    links = [(i, rng.randrange(i), rng.uniform(0, 9)) for i in range(1, size)]
    links += [(0, size - 1, rng.uniform(0, 9))]
    streams = {n: BaseStream(n, rng.randrange(size), rng.uniform(1, 9), rng.uniform(5, 9)) for n in NAMES}
    filters = {"weak": Filter("weak", "a", 0.5), "strong": Filter("strong", "a", 0.2, frozenset({"weak"}))}
    queries = []
    for number in range(5):
        chosen = tuple(rng.sample(NAMES, rng.randint(2, 4)))
        kept = {"a": rng.choice(list(filters))} if "a" in chosen and rng.random() < 0.6 else {}
        widths = {n: rng.uniform(1, 5) for n in chosen if rng.random() < 0.5}
        queries.append(Query(f"q{number}", chosen, rng.randrange(size), kept, widths))
    pairs = {frozenset(pair): rng.uniform(0.05, 0.9) for pair in combinations(NAMES, 2)}
    return PlacementProblem(
        Network(tuple(f"s{i}" for i in range(size)), tuple(links)),
        streams,
        pairs,
        tuple(queries),
        sinks=sinks,
        filters=filters,
    )


def _trees(rng: random.Random, problem: PlacementProblem) -> list[tuple[str, Tree]]:
    """Any joins at any sites, reading what runs already now and then."""
    made: list[tuple[frozenset[str], int, str]] = []
    trees: list[tuple[str, Tree]] = []
    for query in problem.queries:
        parts: list[Tree] = []
        left = set(query.streams)
        for streams, site, owner in rng.sample(made, len(made)):
            if streams <= left and rng.random() < 0.6:
                parts.append(Reused(-1, owner, streams, site))
                left -= streams
        parts += [Leaf(name, problem.streams[name].site) for name in query.streams if name in left]
        while len(parts) > 1:
            one, other = rng.sample(range(len(parts)), 2)
            joined = Join(parts[one], parts[other], rng.randrange(problem.network.size))
            parts = [part for i, part in enumerate(parts) if i not in (one, other)] + [joined]
        trees.append((query.id, parts[0]))
        made += [(node.streams, node.site, query.id) for node in walk(parts[0]) if isinstance(node, Join)]
        if problem.sinks:
            made.append((streams_of(parts[0]), query.sink, query.id))
    return trees


@pytest.mark.parametrize("seed", range(40))
def test_edges_cost_what_the_deployment_costs(seed: int) -> None:
    rng = random.Random(seed)
    problem = _problem(rng, sinks=seed % 4 == 0)
    trees = _trees(rng, problem)
    distance = prepare(problem.network).distance
    total, _ = recompute(problem, trees, distance)
    flows = flows_of(problem, [Placed(name, tree, 0.0, 1) for name, tree in trees])
    paid = sum(edge.rate * distance(edge.source, edge.target) for edge in flows.edges)
    assert paid == pytest.approx(total)
    for operator in flows.operators.values():
        assert operator.streams == operator.inputs[0].streams | operator.inputs[1].streams
        assert all(set(operator.streams) <= set(_streams(problem, reader)) for reader in operator.readers)


def _streams(problem: PlacementProblem, query: str) -> tuple[str, ...]:
    return next(one.streams for one in problem.queries if one.id == query)


@pytest.mark.parametrize("seed", range(10))
def test_paths_are_cheapest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 12
    costs = np.where(rng.random((size, size)) < 0.3, rng.uniform(0, 9, (size, size)), np.inf)
    costs[np.arange(size), (np.arange(size) + 1) % size] = rng.integers(0, 3, size)
    np.fill_diagonal(costs, 0.0)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(
        (i, j, costs[i, j]) for i in range(size) for j in range(size) if i != j and np.isfinite(costs[i, j])
    )
    paths = Paths(Network(tuple(range(size)), costs=costs))
    for a in range(size):
        for b in range(size):
            path = paths.between(a, b)
            assert (path[0], path[-1]) == (a, b)
            paid = sum(costs[hop] for hop in pairwise(path))
            assert paid == pytest.approx(nx.dijkstra_path_length(graph, a, b))


def test_links_of_no_cost_are_links() -> None:
    paths = Paths(Network(("a", "b", "c"), ((0, 1, 0.0), (1, 2, 0.0), (0, 2, 1.0))))
    assert paths.between(0, 2) == (0, 1, 2)


def test_no_path_is_our_bug() -> None:
    with pytest.raises(InternalError, match="no path"):
        Paths(Network(("a", "b"), ())).between(0, 1)


def test_reusing_what_nobody_made_is_our_bug() -> None:
    problem = _problem(random.Random(1), sinks=False)
    query = problem.queries[0]
    tree = Reused(0, "nobody", frozenset(query.streams), 0)
    with pytest.raises(InternalError, match="nobody made"):
        flows_of(problem, [Placed(query.id, tree, 0.0, 1)])
