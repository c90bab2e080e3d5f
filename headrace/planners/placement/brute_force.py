"""The oracle for planners of one query: every join tree with every choice of sites, one by one.

Slow, plain, and sharing no code with what it checks: own rates, own cheapest paths, no tables. Only what is
on offer, and at which price, is taken from `Deployed`, whose prices `recompute` checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from headrace.planners.placement.deployed import Deployed, Offer
from headrace.planners.placement.problem import (
    Join,
    Leaf,
    Network,
    PlacementProblem,
    Query,
    Site,
    Tree,
    streams_of,
)

INF = float("inf")
Priced = tuple[Tree, float]


def cheapest_paths(network: Network) -> list[list[float]]:
    """Round after round over all links, until nothing gets cheaper."""
    size = network.size
    links = list(network.links) + [(b, a, cost) for a, b, cost in network.links]
    if network.costs is not None:
        links = [(a, b, float(network.costs[a][b])) for a in range(size) for b in range(size) if a != b]
    found = [[0.0 if a == b else INF for b in range(size)] for a in range(size)]
    for row in found:
        changed = True
        while changed:
            changed = False
            for a, b, cost in links:
                if row[a] + cost < row[b]:
                    row[b], changed = row[a] + cost, True
    return found


def data_of(problem: PlacementProblem, query: Query, names: frozenset[str]) -> float:
    """The data rate of some of a query's streams, joined."""
    rows = 1.0
    for name in names:
        rows *= problem.streams[name].rate
        if name in query.filters:
            rows *= problem.filters[query.filters[name]].selectivity
    for a, b in combinations(sorted(names), 2):
        rows *= problem.selectivities.get(frozenset({a, b}), 1.0)
    wide = sum(problem.streams[name].width for name in names)
    return rows * sum(query.widths.get(name, problem.streams[name].width) for name in names) / wide


def every_tree(
    problem: PlacementProblem, query: Query, offers: Sequence[Offer], paths: list[list[float]]
) -> Iterator[Priced]:
    """All deployments, each with its cost up to where its result is made."""
    rate: dict[frozenset[str], float] = {}
    names = sorted(query.streams)
    for size in range(1, len(names) + 1):
        for part in combinations(names, size):
            rate[frozenset(part)] = data_of(problem, query, frozenset(part))
    joins = [site for site in range(problem.network.size) if site not in problem.forbidden]

    def way(priced: Priced, site: Site) -> float:
        tree, cost = priced
        away = paths[tree.site][site]
        return cost + rate[streams_of(tree)] * away if away < INF else INF

    return _trees(frozenset(names), problem, offers, joins, way)


def _trees(
    names: frozenset[str],
    problem: PlacementProblem,
    offers: Sequence[Offer],
    joins: Sequence[Site],
    way: Callable[[Priced, Site], float],
) -> Iterator[Priced]:
    if len(names) == 1:
        (name,) = names
        yield Leaf(name, problem.streams[name].site), 0.0
    for offer in offers:
        if offer.streams == names:
            yield offer.as_leaf(), offer.extra
    for left, right in _halves(names):
        rights = list(_trees(right, problem, offers, joins, way))
        for one in _trees(left, problem, offers, joins, way):
            for two in rights:
                for site in joins:
                    yield Join(one[0], two[0], site), way(one, site) + way(two, site)


def _halves(names: frozenset[str]) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Every way to part a set in two, each once: the first name stays on the left."""
    first, *others = sorted(names)
    for size in range(len(others)):
        for part in combinations(others, size):
            left = frozenset({first, *part})
            yield left, names - left


def cheapest(problem: PlacementProblem, query: Query, deployed: Deployed) -> tuple[Tree | None, float]:
    """The best deployment and what it adds; inf: there is none."""
    paths = cheapest_paths(problem.network)
    rate = data_of(problem, query, frozenset(query.streams))
    best: tuple[Tree | None, float] = (None, INF)
    for tree, cost in every_tree(problem, query, deployed.offers(query), paths):
        away = paths[tree.site][query.sink]
        total = cost + rate * away if away < INF else INF
        if total < best[1]:
            best = tree, total
    return best
