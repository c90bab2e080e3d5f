"""Where the joins of a project are best done: its queries, sites and links as a placement problem, and the
answer as plans, with what it costs beside two simpler ways.

Only queries that join streams are placed. The others stay whole: a tree or a job at its site, to which its
streams are brought. `plan` shows what is decided here, and with `planner.spread` `run` goes by it
(service/cutting.py).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.catalog.model import Project
from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.plan.logical import LogicalPlan, StreamScan, nodes
from headrace.plan.placed import PlacedPlan
from headrace.plan.placed_network import PlacedNetwork
from headrace.planners.placement.problem import Network, Options, PlacementPlan, PlacementProblem
from headrace.planners.placement.rates import data_rate, wanted
from headrace.service.estimates import expected_rate
from headrace.service.placing_flows import Flows, Paths, flows_of
from headrace.service.placing_names import name_all
from headrace.service.placing_network import placed_network
from headrace.service.placing_part import ONE_STREAM, JoinPart, join_part, staying_together
from headrace.service.placing_problem import NO_LINKS, Placeable, network_of, placeable, scan_of, width_of

if TYPE_CHECKING:
    from headrace.planners.placement.network import Prepared


@dataclass(frozen=True, slots=True)
class Brought:
    """A base stream that is brought to a job that is not placed. Path None: there is no way."""

    stream: str
    path: tuple[str, ...] | None
    rate: float


@dataclass(frozen=True, slots=True)
class Whole:
    """A query (or a tree of queries) that stays whole at its site."""

    name: str
    queries: tuple[str, ...]
    site: str
    reason: str
    brought: tuple[Brought, ...]


@dataclass(frozen=True)
class Placing:
    planner: str
    found: Placeable
    plan: PlacementPlan
    flows: Flows
    network: PlacedNetwork
    whole: tuple[Whole, ...]
    cost: float
    """Of the joins' data: bytes in flight, where no link has a `cost` of its own."""
    at_sinks: float
    """The same with every stream brought to every sink, and joined there."""
    alone: float
    """The same with each query placed as if there were no other."""
    notes: tuple[str, ...]


def place_joins(project: Project, everything: PlacedPlan, planner: str | None = None) -> Placing | None:
    """The placement of the queries of a plan. None: there is one site, or no query joins streams. Raises
    UserError where there is no such planner."""
    chosen = _planner(project, planner)
    network = network_of(project)
    if network.size < 2:
        return None
    parts, reasons = _parts(project, network, everything)
    if not parts:
        return None
    found = _found(project, everything, parts)
    # Imported late, here and below: the libraries take half a second, and most commands need none of them.
    from headrace.planners.placement.solve import solve

    plan = solve(found.problem, chosen, Options(), time.perf_counter)
    alone = solve(replace(found.problem, reuse=False), chosen, Options(), time.perf_counter)
    flows = flows_of(found.problem, plan.queries)
    scale = found.scale
    return Placing(
        chosen,
        found,
        plan,
        flows,
        placed_network(project, found, flows),
        _whole(project, network, everything, reasons),
        plan.total_cost * scale,
        _at_sinks(found.problem, _prepared(network)) * scale,
        alone.total_cost * scale,
        () if project.links else (NO_LINKS,),
    )


def joins_of(project: Project, everything: PlacedPlan) -> Placeable | None:
    """The joins of a plan that can be placed; None: there are none, or there is one site."""
    network = network_of(project)
    if network.size < 2:
        return None
    parts, _ = _parts(project, network, everything)
    return _found(project, everything, parts) if parts else None


def _found(project: Project, everything: PlacedPlan, parts: Mapping[str, JoinPart]) -> Placeable:
    sites = {job.query: job.site for job in everything.jobs}
    return placeable(project, name_all({name: (sites[name], part) for name, part in parts.items()}))


def _planner(project: Project, name: str | None) -> str:
    from headrace.planners.placement.solve import PLANNERS

    if name is not None and name not in PLANNERS:
        raise UserError(
            f'there is no placement planner "{name}"', hint=did_you_mean(name, PLANNERS, "planners")
        )
    return name or project.planner.placement


def _parts(
    project: Project, network: Network, everything: PlacedPlan
) -> tuple[dict[str, JoinPart], dict[str, str]]:
    """What can be placed, and why the rest is not."""
    prepared = _prepared(network)
    parts: dict[str, JoinPart] = {}
    reasons = {member.query: ONE_STREAM for tree in everything.trees for member in tree.members}
    for split in everything.federated:
        reasons |= {member.query: staying_together(split) for member in split.members}
    for job in everything.jobs:
        part = join_part(job.plan)
        lost = part if isinstance(part, str) else _unreached(project, prepared, job.site, part)
        if isinstance(part, JoinPart) and not lost:
            parts[job.query] = part
        else:
            reasons[job.query] = str(lost)
    return parts, reasons


def _prepared(network: Network) -> Prepared:
    from headrace.planners.placement.network import prepare

    return prepare(network)


def _unreached(project: Project, prepared: Prepared, sink: str, part: JoinPart) -> str:
    at = prepared.network.position
    for leaf in part.leaves:
        stream = project.streams[scan_of(leaf).stream]
        if prepared.distance(at[stream.site], at[sink]) == float("inf"):
            return f"no links lead from {stream.site}, where {stream.name} comes from, to {sink}"
    return ""


def _at_sinks(problem: PlacementProblem, prepared: Prepared) -> float:
    total = 0.0
    for query in problem.queries:
        holding = wanted(problem, query)
        for name in query.streams:
            way = prepared.distance(problem.streams[name].site, query.sink)
            total += data_rate(problem, holding, (name,)) * way
    return total


def _whole(
    project: Project, network: Network, everything: PlacedPlan, reasons: Mapping[str, str]
) -> tuple[Whole, ...]:
    bring = Bringer(project, network)
    found: list[Whole] = []
    for tree in everything.trees:
        queries = tuple(member.query for member in tree.members)
        plans = [member.plan for member in tree.members]
        found.append(Whole(tree.id, queries, tree.site, ONE_STREAM, bring.all(plans, tree.site)))
    for split in everything.federated:
        queries = tuple(member.query for member in split.members)
        plans = [member.plan for member in split.members]
        found.append(
            Whole(split.id, queries, split.site, staying_together(split), bring.all(plans, split.site))
        )
    for job in everything.jobs:
        if job.query in reasons:
            brought = bring.all([job.plan], job.site)
            found.append(Whole(job.id, (job.query,), job.site, reasons[job.query], brought))
    return tuple(found)


class Bringer:
    """Finds the way of streams to jobs that are whole at one site."""

    def __init__(self, project: Project, network: Network) -> None:
        self._project = project
        self._network = network
        self._paths = Paths(network)
        self._prepared = _prepared(network)

    def all(
        self, plans: Sequence[LogicalPlan], site: str, besides: Collection[str] = ()
    ) -> tuple[Brought, ...]:
        """The base streams of these plans that come from elsewhere, each once with the columns that are read.
        `besides` are no base streams."""
        columns: dict[str, set[str]] = {}
        for plan in plans:
            for node in nodes(plan):
                if isinstance(node, StreamScan):
                    columns.setdefault(node.stream, set()).update(node.columns.names)
        return tuple(
            self._one(stream, names, site)
            for stream, names in columns.items()
            if stream not in besides and self._project.streams[stream].site != site
        )

    def path(self, source: str, target: str) -> tuple[str, ...] | None:
        """The sites from one to another by the cheapest way, both ends included; None: there is none."""
        ends = self._network.position[source], self._network.position[target]
        if self._prepared.distance(*ends) == float("inf"):
            return None
        return tuple(str(self._network.sites[i]) for i in self._paths.between(*ends))

    def _one(self, name: str, columns: set[str], site: str) -> Brought:
        stream = self._project.streams[name]
        read = [column for column in stream.schema_ if column.name in columns]
        rate = expected_rate(stream) * width_of(read)
        return Brought(name, self.path(stream.site, site), rate)
