"""Small random placement problems, and every way to deploy them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np

from headrace.planners.placement.network import Prepared, prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Filter,
    Join,
    Leaf,
    Network,
    PlacementProblem,
    Query,
    Reused,
    Tree,
    streams_of,
    walk,
)
from headrace.planners.placement.recompute import recompute


def tiny(
    seed: int, *, queries: int = 2, streams: int = 3, sites: int = 3, one_way: bool = False
) -> PlacementProblem:
    """Random distances (by links, or a matrix that is not symmetric), rates and selectivities."""
    rng = np.random.default_rng([seed, queries, streams, sites])
    names = [f"s{i}" for i in range(streams)]
    made = {n: BaseStream(n, int(rng.integers(sites)), float(rng.uniform(1, 10))) for n in names}
    pairs = {frozenset(pair): float(rng.uniform(0.05, 0.9)) for pair in combinations(names, 2)}
    asked = []
    for i in range(queries):
        size = int(rng.integers(2, streams + 1))
        chosen = sorted(rng.choice(streams, size=size, replace=False).tolist())
        asked.append(Query(f"q{i}", tuple(names[k] for k in chosen), int(rng.integers(sites))))
    costs = rng.uniform(1, 10, size=(sites, sites))
    if one_way:
        network = Network(tuple(range(sites)), costs=costs)
    else:
        links = tuple((a, b, float(costs[a, b])) for a, b in combinations(range(sites), 2))
        network = Network(tuple(range(sites)), links)
    return PlacementProblem(network, made, pairs, tuple(asked))


def with_cuts(problem: PlacementProblem, seed: int) -> PlacementProblem:
    """Queries that want some rows of the first stream and some columns of others."""
    rng = np.random.default_rng([seed, 77])
    inside = Filter("in", "s0", 0.2, frozenset({"wide"}))
    filters = {"wide": Filter("wide", "s0", 0.5), "in": inside, "far": Filter("far", "s0", 0.1)}
    asked = []
    for query in problem.queries:
        name = str(rng.choice([*filters, ""]))
        chosen = {"s0": name} if name and "s0" in query.streams else {}
        widths = {n: 0.5 for n in query.streams if rng.random() < 0.3}
        asked.append(replace(query, filters=chosen, widths=widths))
    return replace(problem, queries=tuple(asked), filters=filters)


def prepared_of(problem: PlacementProblem) -> Prepared:
    return prepare(problem.network)


def every_tree(problem: PlacementProblem, names: frozenset[str], running: Sequence[Reused]) -> Iterator[Tree]:
    for offer in running:
        if offer.streams == names:
            yield offer
    if len(names) == 1:
        (name,) = names
        yield Leaf(name, problem.streams[name].site)
    for size in range(1, len(names)):
        for part in map(frozenset, combinations(sorted(names), size)):
            if min(names) in part:
                yield from _joins(problem, part, names - part, running)


def _joins(
    problem: PlacementProblem, part: frozenset[str], rest: frozenset[str], running: Sequence[Reused]
) -> Iterator[Tree]:
    for left in every_tree(problem, part, running):
        for right in every_tree(problem, rest, running):
            for site in range(problem.network.size):
                if site not in problem.forbidden:
                    yield Join(left, right, site)


def every_deployment(problem: PlacementProblem, order: Sequence[Query]) -> Iterator[list[tuple[str, Tree]]]:
    """Of queries in this order."""

    def more(done: list[tuple[str, Tree]], running: list[Reused]) -> Iterator[list[tuple[str, Tree]]]:
        if len(done) == len(order):
            yield done
            return
        query = order[len(done)]
        offers = running if problem.reuse else []
        for tree in every_tree(problem, frozenset(query.streams), offers):
            made = [
                Reused(0, query.id, streams_of(node), node.site)
                for node in walk(tree)
                if isinstance(node, Join)
            ]
            yield from more([*done, (query.id, tree)], running + made)

    yield from more([], [])


def cheapest_of_all(problem: PlacementProblem, *, all_orders: bool = False) -> float:
    """By looking at every deployment of all queries."""
    distance = prepared_of(problem).distance
    orders = permutations(problem.queries) if all_orders else [problem.queries]
    return min(
        recompute(problem, trees, distance)[0]
        for order in orders
        for trees in every_deployment(problem, order)
    )
