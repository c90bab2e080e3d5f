"""Blocks and regions, against networkx."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from headrace.planners.placement.candidates import Regions, graph_of
from headrace.planners.placement.problem import Network
from tests.unit.planners.placement.exact_cases import KINDS, large_problem, small_problem
from tests.unit.planners.placement.exact_oracle import networkx_distances


def plain_graph(network: Network) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(network.size))
    graph.add_edges_from((a, b) for a, b, _ in network.links if a != b)
    return graph


def expected_region(graph: nx.Graph, terminals: list[int]) -> set[int]:
    """Blocks along one path between terminals: any path goes through the same blocks."""
    blocks = list(nx.biconnected_components(graph))
    home = {
        frozenset(edge): i for i, part in enumerate(nx.biconnected_component_edges(graph)) for edge in part
    }
    found = set(terminals)
    for a, b in pairwise(terminals):
        for edge in pairwise(nx.shortest_path(graph, a, b)):
            found |= blocks[home[frozenset(edge)]]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_region_is_the_blocks_between_the_terminals(kind: str) -> None:
    rng = np.random.default_rng(1)
    for seed in range(3):
        network = large_problem(seed, kind).network
        graph, regions = plain_graph(network), Regions(graph_of(network))
        component = sorted(nx.node_connected_component(graph, int(rng.integers(network.size))))
        for count in (1, 2, 3, 7):
            terminals = rng.choice(component, size=count).tolist()
            region = regions.between(np.array(terminals))
            assert set(region.sites.tolist()) == expected_region(graph, terminals)
            assert region.sites.tolist() == sorted(region.sites.tolist())


def test_connected() -> None:
    for seed in range(60):
        network = small_problem(seed).network
        if network.costs is None:
            graph, regions = plain_graph(network), Regions(graph_of(network))
            for a in range(network.size):
                for b in range(network.size):
                    assert regions.connected(a, b) == nx.has_path(graph, a, b)


def test_distances_inside_a_region_are_those_of_the_network() -> None:
    for kind in KINDS:
        network = large_problem(11, kind).network
        want = networkx_distances(network)
        component = np.flatnonzero(want[0] < np.inf)
        region = Regions(graph_of(network)).between(np.random.default_rng(2).choice(component, size=4))
        ends, costs = region.graph.indices, region.graph.costs
        links = tuple(
            (u, int(ends[k]), float(costs[k]))
            for u in range(len(region.sites))
            for k in range(region.graph.starts[u], region.graph.starts[u + 1])
        )
        inside = networkx_distances(Network(tuple(range(len(region.sites))), links))
        np.testing.assert_allclose(inside, want[np.ix_(region.sites, region.sites)], rtol=1e-12)


def test_nearest_allowed_site_joins_the_region() -> None:
    """Terminals 0 and 2 on a path over 1, where nothing may join; from 1 hang 3 (far), and 4 behind 5."""
    links = ((0, 1, 1.0), (1, 2, 1.0), (1, 3, 9.0), (1, 5, 1.0), (5, 4, 1.0))
    regions = Regions(graph_of(Network(tuple(range(6)), links)))
    nearest = regions.nearest_allowed({0, 1, 2, 5})
    assert nearest.tolist() == [4, 4, 4, 3, 4, 4]
    region = regions.for_joins(np.array([0, 2]), nearest)
    assert region.sites.tolist() == [0, 1, 2, 4, 5]
    assert regions.for_joins(np.array([0, 2]), None).sites.tolist() == [0, 1, 2]
    assert regions.nearest_allowed(range(6)).tolist() == [-1] * 6


def test_parallel_links_and_loops() -> None:
    network = Network((0, 1), ((0, 1, 5.0), (1, 0, 3.0), (0, 0, 1.0), (0, 1, 4.0)))
    graph = graph_of(network)
    assert graph.starts.tolist() == [0, 1, 2]
    assert graph.indices.tolist() == [1, 0]
    assert graph.costs.tolist() == [3.0, 3.0]
