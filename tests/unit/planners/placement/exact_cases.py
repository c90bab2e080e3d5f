"""Random placement problems, and the check of the exact planner on one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import networkx as nx
import numpy as np

from headrace.errors import UserError
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.exact import Exact
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Filter,
    Network,
    Options,
    PlacementProblem,
    Query,
)
from headrace.planners.placement.recompute import recompute
from tests.unit.planners.placement.exact_oracle import Oracle, brute_force

KINDS = ("tree", "grid", "cycle of cliques", "multi-homed", "random", "in pieces", "path", "complete")


def small_problem(seed: int) -> PlacementProblem:
    """Up to 6 sites and 5 streams, queries over at most 4 of them: links of cost 0, parallel links, loops,
    sites that cannot be reached, matrices that depend on the direction, filters, widths, forbidden sites."""
    rng = random.Random(seed)
    size = rng.randint(1, 6)
    network = _small_matrix(rng, size) if rng.random() < 0.3 else _small_links(rng, size)
    forbidden = (
        frozenset(i for i in range(size) if rng.random() < 0.25) if rng.random() < 0.4 else frozenset()
    )
    return _with_queries(rng, network, rng.randint(1, 5), 4, rng.randint(1, 4), forbidden)


def large_problem(seed: int, kind: str, queries: int = 3, forbidden: float = 0.0) -> PlacementProblem:
    """Some hundred sites of one kind, queries over up to 5 streams."""
    rng = random.Random(seed)
    graph = nx.convert_node_labels_to_integers(_graph(kind, rng, seed))
    links = tuple((a, b, _cost(rng)) for a, b in graph.edges)
    network = Network(tuple(range(len(graph))), links)
    closed = frozenset(site for site in range(len(graph)) if rng.random() < forbidden)
    return _with_queries(rng, network, 6, 5, queries, closed)


def check(problem: PlacementProblem, oracle: Oracle = brute_force) -> tuple[int, int]:
    """Plan all queries one after another; every cost must be the oracle's, and the recomputed one. (queries
    deployed, queries that cannot be)."""
    prepared = prepare(problem.network)
    planner, deployed = Exact(problem, prepared, Options()), Deployed(problem, prepared.distance)
    cheapest, trees = oracle(problem), []
    for query in problem.queries:
        want = cheapest(query, deployed)
        try:
            placed = planner.place(query, deployed)
        except UserError:
            assert want == np.inf, f"{query.id} has a deployment for {want}"
            continue
        assert abs(placed.cost - want) <= 1e-9 * max(1.0, want), f"{query.id}: {placed.cost} is not {want}"
        assert placed.certified
        deployed.add(query, placed.tree)
        trees.append((query.id, placed.tree))
        total, added = recompute(problem, trees, prepared.distance)
        assert abs(added[-1] - placed.cost) <= 1e-9 * max(1.0, total)
    return len(trees), len(problem.queries) - len(trees)


def _cost(rng: random.Random) -> float:
    return rng.choice([0.0, 1.0, 2.0, round(rng.uniform(0.0, 10.0), 2), round(rng.uniform(0.0, 10.0), 2)])


def _small_matrix(rng: random.Random, size: int) -> Network:
    costs = np.array(
        [[_cost(rng) if rng.random() < 0.7 else np.inf for _ in range(size)] for _ in range(size)]
    ).reshape(size, size)
    return Network(tuple(range(size)), costs=np.minimum(costs, costs.T) if rng.random() < 0.5 else costs)


def _small_links(rng: random.Random, size: int) -> Network:
    links = [(rng.randrange(size), rng.randrange(size), _cost(rng)) for _ in range(rng.randint(0, 2 * size))]
    if rng.random() < 0.7:
        links += [(i, rng.randrange(i), _cost(rng)) for i in range(1, size)]
    return Network(tuple(range(size)), tuple(links))


def _graph(kind: str, rng: random.Random, seed: int) -> nx.Graph:
    size = rng.randint(70, 110)
    if kind == "tree":
        return nx.random_labeled_tree(size, seed=seed)
    if kind == "path":
        return nx.path_graph(size)
    if kind == "grid":
        return nx.grid_2d_graph(rng.randint(8, 11), rng.randint(8, 11))
    if kind == "cycle of cliques":
        return nx.ring_of_cliques(rng.randint(12, 16), 6)
    if kind == "complete":
        return nx.complete_graph(66)
    if kind == "in pieces":
        return nx.disjoint_union(nx.random_labeled_tree(70, seed=seed), nx.cycle_graph(30))
    if kind == "random":
        return nx.gnm_random_graph(size, 2 * size, seed=seed)
    return _stubs(rng, seed)


def _stubs(rng: random.Random, seed: int) -> nx.Graph:
    """A core with small domains, each tied to it by one link or two."""
    graph = nx.connected_watts_strogatz_graph(20, 4, 0.3, seed=seed)
    for _ in range(15):
        first = len(graph)
        graph = nx.disjoint_union(graph, nx.random_labeled_tree(6, seed=rng.randrange(1000)))
        for _ in range(rng.randint(1, 2)):
            graph.add_edge(rng.randrange(20), first + rng.randrange(6))
    return graph


def _with_queries(
    rng: random.Random, network: Network, streams: int, most: int, queries: int, forbidden: frozenset[int]
) -> PlacementProblem:
    names = [f"s{i}" for i in range(streams)]
    base = {n: BaseStream(n, rng.randrange(network.size), _rate(rng), rng.choice([1.0, 4.0])) for n in names}
    cut = rng.random() < 0.4
    filters = {one.name: one for name in names for one in _filters(rng, name)} if cut else {}
    return PlacementProblem(
        network,
        base,
        dict(_selectivities(rng, names)),
        tuple(_query(rng, i, names, most, network.size, filters, cut) for i in range(queries)),
        reuse=rng.random() < 0.85,
        sinks=rng.random() < 0.4,
        filters=filters,
        forbidden=forbidden,
    )


def _rate(rng: random.Random) -> float:
    return rng.choice([1.0, 5.0, rng.uniform(0.1, 20.0)])


def _selectivities(rng: random.Random, names: list[str]) -> Iterator[tuple[frozenset[str], float]]:
    for i, a in enumerate(names):
        for b in names[:i]:
            if rng.random() < 0.9:
                yield frozenset({a, b}), rng.choice([0.0, 0.01, 0.1, 0.1, 0.2, rng.uniform(0.0, 2.0)])


def _filters(rng: random.Random, name: str) -> list[Filter]:
    """A weak one, a strong one inside it, and one that has no row in common with them."""
    if rng.random() < 0.3:
        return []
    weak = Filter(f"{name}-weak", name, 0.5)
    strong = Filter(f"{name}-strong", name, 0.2, frozenset({weak.name}))
    return [weak, strong, Filter(f"{name}-other", name, 0.1)]


def _query(
    rng: random.Random,
    number: int,
    names: list[str],
    most: int,
    sites: int,
    filters: dict[str, Filter],
    cut: bool,
) -> Query:
    chosen = tuple(rng.sample(names, rng.randint(1, min(most, len(names)))))
    mine = {n: [f.name for f in filters.values() if f.stream == n] for n in chosen}
    wanted = {n: rng.choice(mine[n]) for n in chosen if mine[n] and rng.random() < 0.7}
    widths = {n: rng.choice([0.5, 1.0]) for n in chosen if cut and rng.random() < 0.4}
    return Query(f"q{number}", chosen, rng.randrange(sites), wanted, widths)
