"""Which queries can be deployed at all, against a search over all sites with networkx."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from headrace.planners.placement.problem import BaseStream, Network, PlacementProblem, Query
from headrace.planners.placement.reach import NoDeployment, check_reach


def _drawn(rng: random.Random) -> PlacementProblem:
    size = rng.randint(2, 6)
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b and rng.random() < 0.3]
    if rng.random() < 0.5:
        costs = np.full((size, size), np.inf)
        np.fill_diagonal(costs, 0)
        for a, b in pairs:
            costs[a, b] = rng.choice([0.0, 1.0])
        network = Network(tuple(range(size)), costs=costs)
    else:
        network = Network(tuple(range(size)), tuple((a, b, 0.0) for a, b in pairs if rng.random() < 0.5))
    streams = {name: BaseStream(name, rng.randrange(size), 1.0) for name in "ABC"}
    names = tuple(rng.sample("ABC", rng.randint(1, 3)))
    forbidden = frozenset(rng.sample(range(size), rng.randint(0, size)))
    queries = (Query("q", names, rng.randrange(size)),)
    return PlacementProblem(network, streams, {}, queries, forbidden=forbidden)


def _graph(network: Network) -> nx.DiGraph:
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(range(network.size))
    if network.costs is not None:
        graph.add_edges_from((int(a), int(b)) for a, b in np.argwhere(np.isfinite(network.costs)))
    for a, b, _ in network.links:
        graph.add_edges_from([(a, b), (b, a)])
    return graph


def _possible(problem: PlacementProblem) -> bool:
    graph, (query,) = _graph(problem.network), problem.queries
    sources = [problem.streams[name].site for name in query.streams]
    places = set(graph) - problem.forbidden if len(sources) > 1 else {query.sink}
    return any(
        nx.has_path(graph, place, query.sink) and all(nx.has_path(graph, site, place) for site in sources)
        for place in places
    )


def _told(problem: PlacementProblem) -> NoDeployment | None:
    try:
        check_reach(problem)
    except NoDeployment as wrong:
        return wrong
    return None


def test_against_a_search_over_all_sites() -> None:
    rng = random.Random(5)
    outcomes = []
    for _ in range(400):
        problem = _drawn(rng)
        wrong = _told(problem)
        assert (wrong is None) == _possible(problem)
        outcomes.append("fine" if wrong is None else "path" if wrong.stream is not None else "site")
    assert min(outcomes.count(kind) for kind in ("fine", "path", "site")) > 15


def test_the_stream_that_is_lost_is_named() -> None:
    streams = {"A": BaseStream("A", 0, 1.0), "B": BaseStream("B", 2, 1.0)}
    queries = (Query("fine", ("A",), 1), Query("lost", ("A", "B"), 1))
    problem = PlacementProblem(Network(("x", "y", "z"), ((0, 1, 0.0),)), streams, {}, queries)
    with pytest.raises(
        NoDeployment, match='query "lost" cannot be deployed: stream "B" cannot reach'
    ) as wrong:
        check_reach(problem)
    assert (wrong.value.query, wrong.value.stream) == (1, 1)
    assert wrong.value.hint == "There is no path from z to y."
