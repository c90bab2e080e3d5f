"""The map of a solved placement problem: what is joined where, and which way the data goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headrace.service.network_picture import Flow, NetworkMap, Spot, Table, Wire
from headrace.service.placing_flows import Flows, Paths, flows_of

if TYPE_CHECKING:
    from headrace.planners.placement.problem import Network, PlacementPlan, PlacementProblem

MOST_WIRES = 600
"""More links are not drawn, only those that carry data: of a full matrix, or of a large network."""


def network_map(problem: PlacementProblem, plan: PlacementPlan) -> NetworkMap:
    running = flows_of(problem, plan.queries)
    flows = tuple(_flows(problem.network, running))
    count = f"{len(plan.queries):,} {'query' if len(plan.queries) == 1 else 'queries'}"
    return NetworkMap(
        title=f"{count} placed by {plan.planner}",
        spots=_spots(problem, running),
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


def _spots(problem: PlacementProblem, running: Flows) -> tuple[Spot, ...]:
    streams: dict[int, list[str]] = {}
    joins: dict[int, list[str]] = {}
    sinks: dict[int, list[str]] = {}
    used = {name for query in problem.queries for name in query.streams}
    for stream in problem.streams.values():
        if stream.name in used:
            streams.setdefault(stream.site, []).append(stream.name)
    for one in running.operators.values():
        joins.setdefault(one.site, []).append(_named(one.streams))
    for query in problem.queries:
        sinks.setdefault(query.sink, []).append(query.id)
    return tuple(
        Spot(str(name), tuple(streams.get(i, ())), tuple(joins.get(i, ())), tuple(sinks.get(i, ())))
        for i, name in enumerate(problem.network.sites)
    )


def _flows(network: Network, running: Flows) -> Iterator[Flow]:
    """Data between different sites, each stream with the rate that serves all its readers."""
    paths, names = Paths(network), [str(name) for name in network.sites]
    inner = [(edge, _named(edge.streams)) for one in running.operators.values() for edge in one.inputs]
    for edge, what in (*inner, *((edge, f"result of {query}") for query, edge in running.results.items())):
        if edge.source != edge.target:
            path = tuple(names[site] for site in paths.between(edge.source, edge.target))
            yield Flow(path, edge.rate, what)


def _named(streams: frozenset[str]) -> str:
    return "*".join(sorted(streams))


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
