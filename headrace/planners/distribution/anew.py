"""As if nothing ran yet: the table that `balanced` would make, with sites named so that much stays.

From operators that are scattered over all sites no few moves lead to a good table: each one alone opens more
connections than it closes. So the good table is made first, and moves are what differs from it.

What may not be moved becomes part of the surroundings: its cpu is used at its site by others, what it gives
is a stream that is at home there, and what it reads is a result that is wanted there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from headrace.planners.distribution.balanced import balanced
from headrace.planners.distribution.costs import CPU
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.rules import move_cost
from headrace.planners.distribution.running import Running
from headrace.planners.distribution.usage import ends, is_remote


def placed_anew(running: Running) -> dict[str, str] | None:
    """Operator -> site, of those that may be moved; None where there is no choice, or the model is not about
    cpu: only there do connections cost anything, and without them few moves do as well."""
    free = [name for site in running.on for name in running.eligible(site)]
    if not free or CPU not in running.model.resources or not running.targets:
        return None
    return _renamed(running, balanced(surrounded(running.problem, running.table, free, running.targets)))


def surrounded(
    problem: Problem, table: Mapping[str, str], free: Collection[str], targets: Collection[str]
) -> Problem:
    """The problem of these operators alone, on these sites, with all others where the table has them."""
    loose = frozenset(free)
    bound = [one for one in problem.operators if one.id not in loose]
    used = {one for name in loose for one in problem.operator[name].inputs}
    streams = [one for one in problem.streams if one.id in used]
    streams += [Stream(one.id, one.rate, table[one.id], one.width) for one in bound if one.id in used]
    return Problem(
        sites=_sites(problem, table, loose, bound, targets),
        operators=tuple(one for one in problem.operators if one.id in loose),
        queries=tuple(_queries(problem, table, loose, bound)),
        streams=tuple(streams),
        links=tuple(link for link in problem.links if {link.source, link.target} <= set(targets)),
        connection_cpu=problem.connection_cpu,
        row_cpu=problem.row_cpu,
    )


def _sites(
    problem: Problem,
    table: Mapping[str, str],
    loose: frozenset[str],
    bound: Collection[Operator],
    targets: Collection[str],
) -> tuple[Site, ...]:
    """With what is bound to them, and its connections to what is bound elsewhere."""
    cpu: defaultdict[str, float] = defaultdict(float)
    memory: defaultdict[str, float] = defaultdict(float)
    for one in bound:
        cpu[table[one.id]] += one.cpu
        memory[table[one.id]] += one.state_bytes
    for edge in problem.edges:
        if not {edge.producer, edge.reader} & loose and is_remote(edge, table):
            for end in ends(edge, table):
                cpu[end or ""] += problem.connection_cpu + problem.row_cpu * edge.rate
    return tuple(
        replace(one, cpu_other=one.cpu_other + cpu[one.id], memory_other=one.memory_other + memory[one.id])
        for one in problem.alive
        if one.id in targets
    )


def _queries(
    problem: Problem, table: Mapping[str, str], loose: frozenset[str], bound: Collection[Operator]
) -> list[Query]:
    found = [
        replace(query, outputs=own)
        for query in problem.queries
        if (own := tuple(name for name in query.outputs if name in loose))
    ]
    for one in bound:
        for port, name in enumerate(one.inputs):
            if name in loose:
                found.append(Query(f"input {port} of {one.id}", (name,), table[one.id]))
    return found


def _renamed(running: Running, table: Mapping[str, str]) -> dict[str, str]:
    """Sites are exchanged, two by two, while fewer rows would have to be moved; but only sites that are
    alike, or the loads would be other ones."""
    kept: defaultdict[tuple[str, str], float] = defaultdict(float)
    for name, site in table.items():
        kept[site, running.table[name]] += move_cost(running.problem, running.rules, (name,)) or 1e-9
    named = {site: site for site in running.targets}
    homes = {edge.fixed for edge in running.problem.edges}
    swapped = True
    while swapped:
        swapped = False
        for one in named:
            for other in named:
                now = kept[one, named[one]] + kept[other, named[other]]
                then = kept[one, named[other]] + kept[other, named[one]]
                if then > now * (1 + 1e-9) and _alike(running, named[one], named[other], homes):
                    named[one], named[other], swapped = named[other], named[one], True
    return {name: named[site] for name, site in table.items()}


def _alike(running: Running, one: str, other: str, homes: Collection[str | None]) -> bool:
    """Nothing is at home there, and they are equal in all but their names."""
    sites = running.problem.site
    same = replace(sites[one], id="", region="") == replace(sites[other], id="", region="")
    bound = any(running.stays(name) for site in (one, other) for name in running.on[site])
    return same and not bound and one not in homes and other not in homes
