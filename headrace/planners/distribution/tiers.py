"""Two tiers of managers (Section 4.2): one gives whole queries to regions, each region distributes its own.

Queries that share operators go to one region together, since an operator runs only once. The upper manager
sees of a region only its name, its total cpu and which streams are at home there; the lower one gets an
ordinary problem, with its own sites and operators, and uses any pattern or policy on it. The sum of the parts
is then checked as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headrace.errors import InternalError, UserError
from headrace.planners.distribution.balanced import balanced
from headrace.planners.distribution.problem import Problem, Query, Table
from headrace.planners.distribution.usage import misplaced

Pattern = Callable[[Problem], Mapping[str, str]]


def regions_of(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Region -> its sites that answer. A region without any is left out."""
    found: dict[str, list[str]] = {}
    for site in problem.alive:
        found.setdefault(site.region, []).append(site.id)
    return {region: tuple(sites) for region, sites in found.items()}


def assign_queries(problem: Problem) -> dict[str, str]:
    """Query -> region: families of queries, the dearest first, to where the load stays lowest; of regions
    within a tenth of it, to the one that has most of their streams. Raises UserError."""
    regions = regions_of(problem)
    if not regions:
        raise UserError("no site answers in any region")
    capacity = {r: sum(problem.site[site].cpu for site in sites) for r, sites in regions.items()}
    used = {r: sum(problem.site[site].cpu_other for site in sites) for r, sites in regions.items()}
    found: dict[str, str] = {}
    for family in sorted(families(problem), key=lambda one: -_cpu(problem, one)):
        cpu = _cpu(problem, family)
        loads = {r: (used[r] + cpu) / capacity[r] for r in regions}
        lowest = min(loads.values())
        near = [r for r in regions if loads[r] <= lowest * 1.1]
        best = max(near, key=lambda r: (_at_home(problem, family, regions[r]), -loads[r]))
        used[best] += cpu
        found.update({query.id: best for query in family})
    return {query.id: found[query.id] for query in problem.queries}


def families(problem: Problem) -> list[tuple[Query, ...]]:
    """Queries that share an operator, directly or over others, together."""
    found: list[tuple[list[Query], set[str]]] = []
    for query in problem.queries:
        own, queries = set(problem.members[query.id]), [query]
        apart = []
        for others, members in found:
            if members & own:
                queries, own = [*others, *queries], own | members
            else:
                apart.append((others, members))
        found = [*apart, (queries, own)]
    return [tuple(queries) for queries, _ in found]


def part_of(problem: Problem, assigned: Mapping[str, str], region: str) -> Problem:
    """The problem of one region's manager: its sites, and the operators of its queries. Streams and clients
    elsewhere are outside for it."""
    sites = tuple(site for site in problem.sites if site.region == region)
    names = {site.id for site in sites}
    queries = tuple(q for q in problem.queries if assigned[q.id] == region)
    members = frozenset[str]().union(*(problem.members[query.id] for query in queries))
    operators = tuple(one for one in problem.operators if one.id in members)
    read = {name for one in operators for name in one.inputs}
    return replace(
        problem,
        sites=sites,
        operators=operators,
        queries=tuple(replace(q, site=q.site if q.site in names else None) for q in queries),
        streams=tuple(
            replace(stream, site=stream.site if stream.site in names else None)
            for stream in problem.streams
            if stream.id in read
        ),
        links=tuple(link for link in problem.links if {link.source, link.target} <= names),
        table={name: site for name, site in problem.table.items() if name in members and site in names},
    )


def distribute_tiers(problem: Problem, pattern: Pattern = balanced) -> tuple[dict[str, str], dict[str, str]]:
    """Query -> region, and the table of all regions together. Raises UserError where an operator belongs to
    no query, and InternalError where the parts do not make a whole."""
    orphans = set(problem.operator) - frozenset[str]().union(*problem.members.values())
    if orphans:
        message = f'operator "{min(orphans)}" belongs to no query, so it goes to no region'
        raise UserError(message, hint="Name it as an output of a query.")
    assigned = assign_queries(problem)
    table: dict[str, str] = {}
    for region in regions_of(problem):
        part = part_of(problem, assigned, region)
        if part.operators:
            table.update(pattern(part))
    check_whole(problem, assigned, table)
    return assigned, {name: table[name] for name in problem.operator}


def check_whole(problem: Problem, assigned: Mapping[str, str], table: Table) -> None:
    """Raises InternalError where the regions' tables together are no table of the whole, or an operator is
    outside of its query's region. Limits are the regions' own to tell."""
    wrong = next(misplaced(problem, table), "")
    if wrong:
        raise InternalError(f"tiers: {wrong}")
    for query in problem.queries:
        for name in problem.members[query.id]:
            if problem.site[table[name]].region != assigned[query.id]:
                raise InternalError(f"tiers: {name} of {query.id} is outside of region {assigned[query.id]}")


def _members(problem: Problem, family: tuple[Query, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(problem.members[query.id] for query in family))


def _cpu(problem: Problem, family: tuple[Query, ...]) -> float:
    return sum(problem.operator[name].cpu for name in _members(problem, family))


def _at_home(problem: Problem, family: tuple[Query, ...], sites: tuple[str, ...]) -> float:
    """Rows a second that the family reads from streams of these sites."""
    return sum(
        problem.stream[name].rate
        for member in _members(problem, family)
        for name in problem.operator[member].inputs
        if name in problem.stream and problem.stream[name].site in sites
    )
