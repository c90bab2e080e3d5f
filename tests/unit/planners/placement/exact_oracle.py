"""What the cheapest deployment costs: by brute force, or by a dynamic programme that prunes nothing."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np

from headrace.planners.placement.brute_force import cheapest, data_of
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.problem import Floats, Network, PlacementProblem, Query

Oracle = Callable[[PlacementProblem], Callable[[Query, Deployed], float]]


def brute_force(problem: PlacementProblem) -> Callable[[Query, Deployed], float]:
    return lambda query, deployed: cheapest(problem, query, deployed)[1]


def plain(problem: PlacementProblem) -> Callable[[Query, Deployed], float]:
    distance = networkx_distances(problem.network)
    return lambda query, deployed: plain_programme(problem, query, deployed, distance)


def plain_programme(problem: PlacementProblem, query: Query, deployed: Deployed, distance: Floats) -> float:
    """made[S] and here[S] for all sites at once, every split, every pair of sites; nothing is left out."""
    names, offers = query.streams, deployed.offers(query)
    free = np.array([site not in problem.forbidden for site in range(problem.network.size)])
    here: dict[frozenset[str], Floats] = {}
    for mask in range(1, 1 << len(names)):
        whole = frozenset(name for i, name in enumerate(names) if mask >> i & 1)
        made = np.full(problem.network.size, np.inf)
        if len(whole) == 1:
            made[problem.streams[next(iter(whole))].site] = 0.0
        for part, ways in here.items():
            if part < whole:
                made = np.minimum(made, np.where(free, ways + here[whole - part], np.inf))
        for offer in offers:
            if offer.streams == whole:
                made[offer.site] = min(made[offer.site], offer.extra)
        rate = data_of(problem, query, whole)
        length = np.where(np.isinf(distance), np.inf, rate * np.where(np.isinf(distance), 0.0, distance))
        here[whole] = np.min(made[:, None] + length, axis=0)
    return float(here[frozenset(names)][query.sink])


def networkx_distances(network: Network) -> Floats:
    """All cheapest paths, by networkx: the cheapest of parallel links, one way where costs are a matrix."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(network.size))
    links = [*network.links, *((b, a, cost) for a, b, cost in network.links)]
    if network.costs is not None:
        links = [(int(a), int(b), float(network.costs[a, b])) for a, b in np.argwhere(network.costs < np.inf)]
    for a, b, cost in links:
        if a != b and not (graph.has_edge(a, b) and graph[a][b]["weight"] <= cost):
            graph.add_edge(a, b, weight=cost)
    found = np.full((network.size, network.size), np.inf)
    for a, lengths in nx.all_pairs_dijkstra_path_length(graph):
        found[a, list(lengths)] = list(lengths.values())
    return found
