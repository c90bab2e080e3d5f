"""Every table there is, for small problems: the oracle of tests, and an optimiser to compare with.

Minimal maximum load among the tables that keep all limits and, where asked, have at most so many connections.
Judged by `usage` alone, operator by operator; O(sites ^ operators).
"""

from __future__ import annotations

from itertools import product

from headrace.errors import UserError
from headrace.planners.distribution.patterns import grouping, sites_to_use
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.usage import faults, usage

MOST_TABLES = 200_000


def exhaustive(problem: Problem, most_connections: int | None = None) -> dict[str, str]:
    """`most_connections`: in total; by default grouping's. Raises UserError where there are too many tables
    or none is valid."""
    names = [one.id for one in problem.operators]
    sites = [site.id for site in sites_to_use(problem)]
    if len(sites) ** len(names) > MOST_TABLES:
        message = f"{len(names)} operators on {len(sites)} sites are more than {MOST_TABLES:,} tables"
        raise UserError(message, hint="balanced takes any number.")
    if most_connections is None:
        most_connections = usage(problem, grouping(problem)).connections.total
    best: tuple[tuple[float, int, int], dict[str, str]] | None = None
    for chosen in product(sites, repeat=len(names)):
        table = dict(zip(names, chosen, strict=True))
        used = usage(problem, table)
        key = (used.max_load, used.connections.total, used.max_connections)
        if used.connections.total > most_connections or (best is not None and key >= best[0]):
            continue
        if not any(faults(problem, table)):
            best = key, table
    if best is None:
        raise UserError("no table keeps all limits", hint="balanced tells which limits it passes.")
    return best[1]
