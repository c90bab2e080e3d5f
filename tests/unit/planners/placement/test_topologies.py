"""Generators: connected, of the size asked for, costs in their ranges, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.placement.problem import Network
from headrace.planners.placement.topologies import (
    LinkCosts,
    grid,
    multi_homed,
    paper_network,
    random_geometric,
    random_tree,
    transit_stub,
    transit_stub_of,
)

GENERATORS: dict[str, Callable[[int, int], Network]] = {
    "transit_stub_of": transit_stub_of,
    "multi_homed": multi_homed,
    "random_tree": random_tree,
    "random_geometric": random_geometric,
    "grid": lambda sites, seed: grid(sites, 3, seed),
}


def graph_of(network: Network) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(network.size))
    graph.add_weighted_edges_from(network.links)
    return graph


@pytest.mark.parametrize("name", GENERATORS)
def test_connected_without_doubles_or_loops(name: str) -> None:
    for sites in (3, 4, 9, 33, 40, 70, 200, 300):
        network = GENERATORS[name](sites, sites)
        graph = graph_of(network)
        assert network.size == sites * (3 if name == "grid" else 1)
        assert nx.is_connected(graph)
        assert graph.number_of_edges() == len(network.links)
        assert nx.number_of_selfloops(graph) == 0
        assert all(cost > 0 for _, _, cost in network.links)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_for_the_same_seed_only(name: str) -> None:
    make = GENERATORS[name]
    assert make(60, 1) == make(60, 1)
    assert make(60, 1).links != make(60, 2).links


def test_paper_network_has_the_shape_of_section_4_1() -> None:
    for seed in range(20):
        network, costs = paper_network(seed), LinkCosts()
        graph = graph_of(network)
        assert network.size == 128
        transit = graph.subgraph(range(4))
        assert nx.is_connected(transit)
        stubs = list(nx.connected_components(graph.subgraph(range(4, 128))))
        assert Counter(len(stub) for stub in stubs) == {8: 12, 7: 4}
        homes = [[n for s in stub for n in graph[s] if n < 4] for stub in stubs]
        assert all(len(home) == 1 for home in homes)
        assert Counter(home[0] for home in homes) == {0: 4, 1: 4, 2: 4, 3: 4}
        for a, b, cost in network.links:
            low, high = (costs.transit, costs.access, costs.stub)[(a > 3) + (b > 3)]
            assert low <= cost <= high


def test_default_transit_stub_is_the_paper_s_132() -> None:
    network = transit_stub(np.random.default_rng(0))
    assert network.size == 4 + 4 * 4 * 8


def test_domains_have_about_the_links_that_gt_itm_draws() -> None:
    """0.42 of the 28 pairs of a stub domain of 8."""
    network = transit_stub(np.random.default_rng(0), stubs=(8,) * 2000)
    inside = sum(a >= 4 and b >= 4 for a, b, _ in network.links)
    assert inside / 2000 == pytest.approx(0.42 * 28, rel=0.03)


def test_multi_homed_stubs_have_several_transit_sites() -> None:
    graph = graph_of(multi_homed(500, 5))
    transit = round(500 / 33)
    for stub in nx.connected_components(graph.subgraph(range(transit, 500))):
        assert 2 <= len({n for s in stub for n in graph[s] if n < transit}) <= 3
    cuts = set(nx.articulation_points(graph)) & set(range(transit))
    assert not cuts, "single-homed stubs make every transit site a cut"
    assert set(nx.articulation_points(graph_of(transit_stub_of(500, 5)))) >= set(range(transit))


def test_large_networks_have_several_transit_domains() -> None:
    network = transit_stub_of(20_000, 3)
    assert network.size == 20_000
    assert nx.is_connected(graph_of(network))
    transit = round(20_000 / 33)
    between = sum(a < transit and b < transit for a, b, _ in network.links)
    assert transit < between < 2 * transit


def test_geometric_links_are_as_long_as_they_cost() -> None:
    """Costs are distances in the plane, so no link is dearer than a way around it, but for rounding."""
    graph = graph_of(random_geometric(150, 4))
    for a, b, cost in graph.edges(data="weight"):
        assert nx.shortest_path_length(graph, a, b, weight="weight") >= cost - 0.05


@pytest.mark.parametrize(
    "make", [lambda: transit_stub_of(0, 0), lambda: multi_homed(2, 0), lambda: grid(0, 3, 0)]
)
def test_too_small(make: Callable[[], Network]) -> None:
    with pytest.raises(UserError, match="too small"):
        make()
