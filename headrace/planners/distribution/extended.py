"""What has no site yet among what runs: it is placed by a pattern, and all else stays where it is.

    round robin   each to the site with the fewest operators, those that run counted
    grouping      as many on each site as evenly as is possible with those that run
    balanced      ours, with what runs as surroundings (`anew.surrounded`)

Sites of several regions have two tiers of managers (`tiers`): the upper one gives each query that is new to a
region, by the load that is there already, and each region's places its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.errors import InternalError
from headrace.planners.distribution.anew import surrounded
from headrace.planners.distribution.balanced import balanced_or_best
from headrace.planners.distribution.patterns import grouping, round_robin, sites_to_use
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.tiers import distribute_tiers, regions_of
from headrace.planners.distribution.usage import Usage, misplaced, usage

_Place = Callable[[Problem, Mapping[str, int]], dict[str, str]]
_PLACE: Mapping[str, _Place] = {
    "round-robin": round_robin,
    "grouping": grouping,
    "balanced": balanced_or_best,
}


@dataclass(frozen=True, slots=True)
class Extended:
    table: Mapping[str, str]
    """All operators, in the order of the problem."""
    new: Mapping[str, str]
    """Those that were placed now."""
    usage: Usage


def extended(problem: Problem, pattern: str) -> Extended:
    """Place what `problem.table` does not have. What it has stays, also at a site that does not answer:
    bringing it away from there is a move. Raises UserError where no site answers, or, with several regions,
    where an operator belongs to no query; InternalError where the pattern's table is none."""
    held = dict(problem.table)
    loose = [one.id for one in problem.operators if one.id not in held]
    new = _placed(problem, held, loose, pattern) if loose else {}
    table = {one.id: held[one.id] if one.id in held else new[one.id] for one in problem.operators}
    return Extended(table, new, usage(problem, table))


def _placed(problem: Problem, held: dict[str, str], loose: list[str], pattern: str) -> dict[str, str]:
    part = surrounded(problem, held, loose, [site.id for site in sites_to_use(problem)])
    running = Counter(held.values())

    def place(some: Problem) -> dict[str, str]:
        return _PLACE[pattern](some, running)

    new = distribute_tiers(part, place)[1] if len(regions_of(part)) > 1 else place(part)
    wrong = next(misplaced(part, new), "")
    if wrong:
        raise InternalError(f"distribution: {pattern}: {wrong}")
    return new
