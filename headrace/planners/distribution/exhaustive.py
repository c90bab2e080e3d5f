"""Every table there is, for small problems: the oracle of tests, and an optimiser to compare with.

Minimal maximum load among the tables that keep all limits and, where asked, have at most so many connections.
Judged by `usage` alone, operator by operator; O(sites ^ operators).
"""

from __future__ import annotations

from itertools import product

from headrace.errors import UserError
from headrace.planners.distribution.patterns import grouping, sites_to_use
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.usage import faults, passed, usage

MOST_TABLES = 200_000


def exhaustive(problem: Problem, most_connections: int | None = None) -> dict[str, str]:
    """`most_connections`: in total; by default grouping's, and any number where grouping passes a limit.
    Raises UserError where there are too many tables or none is valid."""
    if tables(problem) > MOST_TABLES:
        names, sites = len(problem.operators), len(sites_to_use(problem))
        message = f"{names} operators on {sites} sites are more than {MOST_TABLES:,} tables"
        raise UserError(message, hint="balanced takes any number.")
    if most_connections is None:
        grouped = grouping(problem)
        if not any(faults(problem, grouped)):
            most_connections = usage(problem, grouped).connections.total
    found = best_table(problem, most_connections)
    if found is None:
        within = "" if most_connections is None else f" with at most {most_connections} connections"
        raise UserError(f"no table{within} keeps all limits", hint="balanced tells which limits it passes.")
    return found


def tables(problem: Problem) -> int:
    """How many there are."""
    return int(len(sites_to_use(problem)) ** len(problem.operators))


def best_table(problem: Problem, most_connections: int | None = None) -> dict[str, str] | None:
    """None: no table keeps all limits."""
    names = [one.id for one in problem.operators]
    sites = [site.id for site in sites_to_use(problem)]
    best: tuple[tuple[float, int, int], dict[str, str]] | None = None
    for chosen in product(sites, repeat=len(names)):
        table = dict(zip(names, chosen, strict=True))
        used = usage(problem, table)
        key = (used.max_load, used.connections.total, used.max_connections)
        if best is not None and key >= best[0]:
            continue
        if most_connections is not None and used.connections.total > most_connections:
            continue
        if not passed(problem, used):
            best = key, table
    return None if best is None else best[1]
