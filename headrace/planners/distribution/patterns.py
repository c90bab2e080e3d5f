"""The paper's two distribution patterns, which look at nothing but the shape of plans.

Round robin is Algorithm 2: each operator to the site with the fewest operators; of equals, the first.

Grouping is Algorithm 3. As it is printed it ends in no distribution: the loop over plans visits each plan
once and follows one path in it, the loop over parents (line 18) never ends once a machine is full, and line
27 takes descendants of the wrong operator. What is done here is the listing with the least that makes it
whole:

- the plans are gone through again until every operator has a site;
- "parents" are the ancestors, nearest first, and the climb ends where the machine is full;
- a leaf is an operator with nothing left below it that has no site: as printed, with used ones taken out;
- descendants are those of p that have no site, lowest first, and they come with p only if all of them fit.

How many operators a machine takes: the listing fills each up to total / machines, rounded up, so that 5
operators leave the last of 4 machines empty. The text says "as evenly as possible", and that is the default;
`by_listing` does as the listing.

Both can be asked for a part of the operators: then `running` says how many others each site has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.errors import UserError
from headrace.planners.distribution.problem import Problem, Site, Table

NOBODY: Mapping[str, int] = {}


def sites_to_use(problem: Problem) -> tuple[Site, ...]:
    """Algorithm 1 leaves out a site that does not answer, and stops where none does. Raises UserError."""
    if not problem.alive:
        hint = "Bring one up, or take its `alive: false` back."
        raise UserError("no site answers, so there is nowhere to run anything", hint=hint)
    return problem.alive


def round_robin(problem: Problem, running: Mapping[str, int] = NOBODY) -> dict[str, str]:
    counts = {site.id: running.get(site.id, 0) for site in sites_to_use(problem)}
    table: dict[str, str] = {}
    for plan in problem.plans:
        for name in plan:
            table[name] = min(counts, key=counts.__getitem__)
            counts[table[name]] += 1
    return table


def grouping(
    problem: Problem, running: Mapping[str, int] = NOBODY, *, by_listing: bool = False
) -> dict[str, str]:
    table: dict[str, str] = {}
    for site, room in _quotas(problem, running, by_listing).items():
        while room and (leaf := _next_leaf(problem, table)) is not None:
            for name in _group(problem, table, leaf, room):
                table[name] = site
                room -= 1
    return table


def _quotas(problem: Problem, running: Mapping[str, int], by_listing: bool) -> dict[str, int]:
    """How many operators each site is to get."""
    sites = [site.id for site in sites_to_use(problem)]
    if by_listing:
        return dict.fromkeys(sites, -(-len(problem.operators) // len(sites)))
    found = dict.fromkeys(sites, 0)
    for _ in problem.operators:
        found[min(sites, key=lambda site: found[site] + running.get(site, 0))] += 1
    return found


def _next_leaf(problem: Problem, table: Table) -> str | None:
    """The first operator, plan by plan, that has no site and reads none without one."""
    for plan in problem.plans:
        for name in plan:
            if name not in table and not any(
                below not in table for below in problem.operator[name].inputs if below in problem.operator
            ):
                return name
    return None


def _group(problem: Problem, table: Table, leaf: str, room: int) -> list[str]:
    """The leaf and what is climbed from it, at most `room` operators."""
    found = [leaf]
    for parent in _ancestors(problem, leaf):
        if len(found) == room:
            break
        if parent in table or parent in found:
            continue
        found.append(parent)
        rest = problem.below((parent,)) - set(table) - set(found)
        if len(found) + len(rest) <= room:
            found += [name for name in problem.order if name in rest]
    return found


def _ancestors(problem: Problem, name: str) -> Iterator[str]:
    """What is above, nearest first."""
    seen, level = {name}, [name]
    while level:
        above = [r for one in level for r in problem.readers[one] if r not in seen]
        level = list(dict.fromkeys(above))
        seen.update(level)
        yield from level
