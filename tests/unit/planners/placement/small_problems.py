"""Small random placement problems, and all deployments of a query by plain enumeration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.planners.placement.deployed import Deployed, Offer
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import (
    BaseStream,
    Filter,
    Join,
    Leaf,
    Network,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
    streams_of,
)
from headrace.planners.placement.rates import data_rate, wanted


def random_problem(
    rng: np.random.Generator, *, sites: int = 5, streams: int = 4, queries: int = 4
) -> PlacementProblem:
    """Links or a one-way matrix; sometimes filters, widths, forbidden sites, results read at sinks."""
    names = [f"s{i}" for i in range(streams)]
    made = {n: BaseStream(n, int(rng.integers(sites)), float(rng.uniform(1, 10)), 4.0) for n in names}
    pairs = {
        frozenset((a, b)): float(rng.uniform(0.05, 0.8))
        for a in names
        for b in names
        if a < b and rng.random() < 0.8
    }
    filters = _filters(names) if rng.random() < 0.5 else {}
    forbidden = rng.choice(sites, size=2 if rng.random() < 0.4 else 0, replace=False)
    return PlacementProblem(
        random_network(rng, sites),
        made,
        pairs,
        tuple(_query(f"q{i}", names, sites, rng, filters) for i in range(queries)),
        reuse=bool(rng.random() < 0.8),
        sinks=bool(rng.random() < 0.4),
        filters=filters,
        forbidden=frozenset(int(site) for site in forbidden),
    )


def random_network(rng: np.random.Generator, sites: int) -> Network:
    costs = np.round(rng.uniform(1, 10, (sites, sites)), 2)
    if rng.random() < 0.4:
        np.fill_diagonal(costs, 0)
        return Network(tuple(range(sites)), costs=costs)
    links = [(int(rng.integers(b)), b, float(costs[0, b])) for b in range(1, sites)]
    links += [
        (a, b, float(costs[a, b])) for a in range(sites) for b in range(a + 1, sites) if rng.random() < 0.2
    ]
    return Network(tuple(range(sites)), tuple(links))


def _filters(names: list[str]) -> dict[str, Filter]:
    found = {}
    for name in names:
        found[f"{name} wide"] = Filter(f"{name} wide", name, 0.5)
        found[f"{name} narrow"] = Filter(f"{name} narrow", name, 0.1, frozenset({f"{name} wide"}))
    return found


def _query(
    id: str, names: list[str], sites: int, rng: np.random.Generator, filters: dict[str, Filter]
) -> Query:
    chosen = [names[i] for i in rng.permutation(len(names))[: int(rng.integers(1, len(names) + 1))]]
    cut = {n: f"{n} {rng.choice(['wide', 'narrow'])}" for n in chosen if filters and rng.random() < 0.6}
    widths = {n: float(rng.integers(1, 5)) for n in chosen if rng.random() < 0.15}
    return Query(id, tuple(chosen), int(rng.integers(sites)), cut, widths)


def deployments(problem: PlacementProblem, query: Query, deployed: Deployed) -> Iterator[Tree]:
    """Every join order at every allowed choice of sites, with every choice of reuse."""
    allowed = [site for site in range(problem.network.size) if site not in problem.forbidden]
    return _trees(problem, query.streams, deployed.offers(query), allowed)


def _trees(
    problem: PlacementProblem, names: tuple[str, ...], offers: list[Offer], allowed: list[Site]
) -> Iterator[Tree]:
    yield from (offer.as_leaf() for offer in offers if offer.streams == frozenset(names))
    if len(names) == 1:
        yield Leaf(names[0], problem.streams[names[0]].site)
        return
    for mask in range(1, 1 << (len(names) - 1)):
        left = tuple(name for i, name in enumerate(names) if mask >> i & 1)
        right = tuple(name for name in names if name not in left)
        for one in _trees(problem, left, offers, allowed):
            for other in _trees(problem, right, offers, allowed):
                yield from (Join(one, other, site) for site in allowed)


def price(problem: PlacementProblem, query: Query, tree: Tree, prepared: Prepared) -> float:
    """What a tree adds: its edges, the way to the sink, and what reuse costs upstream."""
    holding = wanted(problem, query)

    def edges(node: Tree) -> float:
        if isinstance(node, Reused):
            return node.extra
        if isinstance(node, Leaf):
            return 0.0
        return sum(edges(part) + sent(part, node.site) for part in (node.left, node.right))

    def sent(node: Tree, to: Site) -> float:
        return data_rate(problem, holding, streams_of(node)) * prepared.distance(node.site, to)

    return edges(tree) + sent(tree, query.sink)
