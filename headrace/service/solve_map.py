"""The map of a solved placement problem: what is joined where, and which way the data goes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.service.network_picture import Flow, NetworkMap, Spot, Table, Wire

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from headrace.planners.placement.deployed import Deployed
    from headrace.planners.placement.problem import Network, PlacementPlan, PlacementProblem

MOST_WIRES = 600
"""More links are not drawn, only those that carry data: of a full matrix, or of a large network."""


def network_map(problem: PlacementProblem, plan: PlacementPlan) -> NetworkMap:
    flows = tuple(_flows(problem, plan))
    count = f"{len(plan.queries):,} {'query' if len(plan.queries) == 1 else 'queries'}"
    return NetworkMap(
        title=f"{count} placed by {plan.planner}",
        spots=_spots(problem, plan),
        wires=_wires(problem.network, flows),
        flows=flows,
        notes=(f"total cost {plan.total_cost:,.6g}",),
    )


def table_of(problem: PlacementProblem, plan: PlacementPlan) -> Table:
    """The queries, under the picture of a page."""
    sinks = {query.id: problem.network.sites[query.sink] for query in problem.queries}
    rows = [
        (one.query, str(sinks[one.query]), f"{one.cost:,.6g}", str(len(one.reused))) for one in plan.queries
    ]
    return Table("Queries", ("query", "sink", "added cost", "reused streams"), tuple(rows))


def _deployed(problem: PlacementProblem, plan: PlacementPlan) -> Deployed:
    from headrace.planners.placement.deployed import Deployed

    queries = {query.id: query for query in problem.queries}
    deployed = Deployed(problem, lambda a, b: 0.0)
    for placed in plan.queries:
        deployed.add(queries[placed.query], placed.tree)
    return deployed


def _spots(problem: PlacementProblem, plan: PlacementPlan) -> tuple[Spot, ...]:
    streams: dict[int, list[str]] = {}
    joins: dict[int, list[str]] = {}
    sinks: dict[int, list[str]] = {}
    used = {name for query in problem.queries for name in query.streams}
    for stream in problem.streams.values():
        if stream.name in used:
            streams.setdefault(stream.site, []).append(stream.name)
    for one in _deployed(problem, plan).derived.values():
        if not one.at_sink:
            joins.setdefault(one.site, []).append("*".join(sorted(one.streams)))
    for query in problem.queries:
        sinks.setdefault(query.sink, []).append(query.id)
    return tuple(
        Spot(str(name), tuple(streams.get(i, ())), tuple(joins.get(i, ())), tuple(sinks.get(i, ())))
        for i, name in enumerate(problem.network.sites)
    )


def _flows(problem: PlacementProblem, plan: PlacementPlan) -> Iterator[Flow]:
    """Data between different sites, each stream with the rate that serves all its readers."""
    from headrace.planners.placement.rates import data_rate, together, wanted

    ways = _Ways(problem.network)
    wants = {query.id: wanted(problem, query) for query in problem.queries}
    for one in _deployed(problem, plan).derived.values():
        if one.at_sink:
            continue
        readers = [wants[name] for name in sorted(one.readers)]
        held = {name: together(problem, [each[name] for each in readers]) for name in one.streams}
        for streams, site, _ in one.inputs:
            if site != one.site:
                what = "*".join(sorted(streams))
                yield Flow(ways.path(site, one.site), data_rate(problem, held, streams), what)
    sinks = {query.id: query for query in problem.queries}
    for placed in plan.queries:
        query = sinks[placed.query]
        if placed.tree.site != query.sink:
            rate = data_rate(problem, wants[query.id], query.streams)
            yield Flow(ways.path(placed.tree.site, query.sink), rate, f"result of {query.id}")


class _Ways:
    """Cheapest paths, by names of sites."""

    def __init__(self, network: Network) -> None:
        self._names = [str(name) for name in network.sites]
        self._graph = _graph(network)
        self._before = cache(self._search)

    def path(self, start: int, end: int) -> tuple[str, ...]:
        before, found = self._before(start), [end]
        while found[-1] != start:
            found.append(int(before[found[-1]]))
        return tuple(self._names[site] for site in reversed(found))

    def _search(self, start: int) -> NDArray[np.int32]:
        """The site before each, on the cheapest path to it."""
        from scipy.sparse.csgraph import dijkstra

        before: NDArray[np.int32] = dijkstra(self._graph, indices=start, return_predecessors=True)[1]
        return before


def _graph(network: Network) -> csr_array:
    """Entries of 0 are kept: they are links that cost nothing."""
    from scipy.sparse import csr_array

    size = network.size
    if network.costs is not None:
        rows, columns = np.nonzero(np.isfinite(network.costs) & ~np.eye(size, dtype=np.bool_))
        return csr_array((network.costs[rows, columns], (rows, columns)), shape=(size, size))
    cheapest: dict[tuple[int, int], float] = {}
    for a, b, cost in network.links:
        for pair in ((a, b), (b, a)):
            cheapest[pair] = min(cost, cheapest.get(pair, cost))
    rows, columns = np.array(list(cheapest), dtype=np.int64).reshape(-1, 2).T
    return csr_array((np.array(list(cheapest.values())), (rows, columns)), shape=(size, size))


def _wires(network: Network, flows: tuple[Flow, ...]) -> tuple[Wire, ...]:
    names = [str(name) for name in network.sites]
    if network.costs is None:
        links = [(names[a], names[b], cost) for a, b, cost in network.links]
    else:
        both = np.triu(np.minimum(network.costs, network.costs.T), 1)
        ends = zip(
            *np.nonzero(np.isfinite(both) & np.triu(np.ones_like(both, dtype=np.bool_), 1)), strict=True
        )
        links = [(names[a], names[b], float(both[a, b])) for a, b in ends]
    if len(links) > MOST_WIRES:
        used = {frozenset(pair) for flow in flows for pair in zip(flow.path, flow.path[1:], strict=False)}
        links = [link for link in links if frozenset(link[:2]) in used]
    return tuple(Wire(*link) for link in links)
