"""What a distribution table asks of every site: load, memory, network, connections; and whether it is valid.

Worked out from the table edge by edge; no planner shares this code, so it can judge all of them.

Connections are counted as the paper counts them: one for every input that is read from another machine and
one for every result. A connection between two sites counts at both; in the total, once. (Figure 19: 12 pieces
of a tree are 11 connections between them, with 6 streams "a total of seventeen". The results are not in that
sum, but they are in the 18 of Section 5.2.2, so they are told apart here.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from headrace.planners.distribution.problem import Edge, Problem, Site, Table

ROUNDING = 1e-9
"""By how much, relatively, a limit may be passed: sums are not exact."""


@dataclass(slots=True)
class SiteUsage:
    site: Site
    operators: list[str] = field(default_factory=list)
    cpu: float = 0.0
    memory: float = 0.0
    network: float = 0.0
    """What leaves it for other sites and for clients, of operators and of base streams that are at home
    there; what has two readers at one site travels once."""
    connections: int = 0

    @property
    def load(self) -> float:
        return self.cpu / self.site.cpu


@dataclass(frozen=True, slots=True)
class Connections:
    between: int
    """Inputs that come from another site."""
    streams: int
    """Inputs from base streams that are not at home where they are read."""
    results: int
    """Results wanted elsewhere than where they are made."""
    channels: int
    """Of `between`: distinct pairs of an operator and a site it is read at. Readers at one site can share."""

    @property
    def total(self) -> int:
        return self.between + self.streams + self.results


@dataclass(frozen=True, slots=True)
class Usage:
    sites: Mapping[str, SiteUsage]
    """Every site of the problem, in its order."""
    connections: Connections
    links: Mapping[tuple[str, str], float]
    """From site to site: what flows."""

    @property
    def max_load(self) -> float:
        return max((one.load for one in self._alive()), default=0.0)

    @property
    def max_connections(self) -> int:
        return max((one.connections for one in self._alive()), default=0)

    def _alive(self) -> Iterator[SiteUsage]:
        """What was there on a site that is gone is no load, and no table changes it."""
        return (one for one in self.sites.values() if one.site.alive)


def ends(edge: Edge, table: Table) -> tuple[str | None, str | None]:
    """The sites of producer and reader; None: outside."""
    source = edge.fixed if edge.producer is None else table[edge.producer]
    target = edge.fixed if edge.reader is None else table[edge.reader]
    return source, target


def is_remote(edge: Edge, table: Table) -> bool:
    """Outside is everywhere else: one end is always an operator, and so at a site."""
    source, target = ends(edge, table)
    return source != target


def usage(problem: Problem, table: Table, lost: Collection[str] = ()) -> Usage:
    """Every operator must have a site that exists (`faults` says whether). What operators at `lost` sites
    are connected with is left out."""
    sites = {
        one.id: SiteUsage(one, cpu=one.cpu_other, memory=one.memory_other, operators=[])
        for one in problem.sites
    }
    for operator in problem.operators:
        at = sites[table[operator.id]]
        at.operators.append(operator.id)
        at.cpu += operator.cpu
        at.memory += operator.state_bytes
    remote = [edge for edge in problem.edges if is_remote(edge, table)]
    if lost:
        remote = [edge for edge in remote if not any(table[name] in lost for name in edge.operators)]
    for edge in remote:
        for end in ends(edge, table):
            if end in sites:
                sites[end].connections += 1
                sites[end].cpu += problem.connection_cpu + problem.row_cpu * edge.rate
    links: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (_, source, target), amount in _flows(remote, table).items():
        if source in sites:
            sites[source].network += amount
            if target in sites:
                links[source, target] += amount
    return Usage(sites, _counted(remote, table), dict(links))


def _flows(remote: list[Edge], table: Table) -> dict[tuple[str, str, str | None], float]:
    """(operator or stream, source, target) -> how much: it goes once to each site that reads it."""
    found: dict[tuple[str, str, str | None], float] = {}
    for edge in remote:
        source, target = ends(edge, table)
        if source is not None:
            found[edge.given, source, target] = edge.rate * edge.width
    return found


def _counted(remote: list[Edge], table: Table) -> Connections:
    streams = sum(edge.producer is None for edge in remote)
    results = sum(edge.reader is None for edge in remote)
    channels = {(edge.producer, table[edge.reader]) for edge in remote if edge.producer and edge.reader}
    return Connections(len(remote) - streams - results, streams, results, len(channels))


def faults(problem: Problem, table: Table) -> Iterator[str]:
    """What makes the table no valid distribution: the paper's two conditions (every operator is in it once,
    every site answers), then limits. An operator can be in a table only once by its form."""
    wrong = list(misplaced(problem, table))
    yield from wrong or (text for _, text in passed(problem, usage(problem, table)).values())


def passed(problem: Problem, used: Usage) -> dict[tuple[str, ...], tuple[float, str]]:
    """The limits that are passed: (site, what) or (site, site) -> by which share of it, and in words. CPU is
    not among them: a site that has too little of it falls behind and loses nothing, and where all have too
    little, no table would be valid; `overloaded` tells."""
    found: dict[tuple[str, ...], tuple[float, str]] = {}
    for name, one in used.sites.items():
        for what, value, limit in (
            ("bytes of memory", one.memory, one.site.memory),
            ("rows a second of network", one.network, one.site.network),
            ("connections", one.connections, one.site.connections),
        ):
            if one.site.alive and value > limit * (1 + ROUNDING):
                text = f"site {name} has {limit:.6g} {what}, and {value:.6g} are taken"
                found[name, what] = too_much(value, limit), text
    for link in problem.links:
        if not (problem.site[link.source].alive and problem.site[link.target].alive):
            continue
        carried = used.links.get((link.source, link.target), 0.0)
        if carried > link.bandwidth * (1 + ROUNDING):
            way = f"the link from {link.source} to {link.target}"
            text = f"{way} takes {link.bandwidth:.6g}, and {carried:.6g} are sent"
            found[link.source, link.target] = too_much(carried, link.bandwidth), text
    return found


def too_much(value: float, limit: float) -> float:
    """By which share a limit is passed. Of nothing there is no share: then it is all that is taken, so that
    less of it is better."""
    return value / limit - 1 if limit else value


def overloaded(used: Usage) -> tuple[str, ...]:
    """Sites that are asked for more cpu than they have."""
    return tuple(name for name, one in used.sites.items() if one.load > 1 + ROUNDING)


def misplaced(problem: Problem, table: Table) -> Iterator[str]:
    """Operators without a site that answers, and entries of the table that are none."""
    for operator in problem.operators:
        name = table.get(operator.id)
        if name is None:
            yield f"operator {operator.id} has no site"
        elif name not in problem.site:
            yield f"operator {operator.id} is at {name}, which does not exist"
        elif not problem.site[name].alive:
            yield f"operator {operator.id} is at {name}, which does not answer"
    for name in table:
        if name not in problem.operator:
            yield f"{name} has a site and is no operator"
