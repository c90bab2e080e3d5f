"""Run a pattern or a policy by its name. What it says of connections and loads is never believed: `usage`
works them out again from the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.errors import InternalError
from headrace.planners.distribution.balanced import balanced_or_best
from headrace.planners.distribution.exhaustive import exhaustive
from headrace.planners.distribution.patterns import grouping, round_robin
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.tiers import distribute_tiers
from headrace.planners.distribution.usage import Usage, misplaced, passed, usage

DEFAULT_PATTERN = "balanced"
DEFAULT_POLICY = "pays"
DEFAULT_MODEL = "cpu"

PATTERNS: Mapping[str, str] = {
    "balanced": "ours: a low maximum load, with no more connections than grouping",
    "grouping": "the paper's: neighbouring operators together, as many on each site (Algorithm 3)",
    "grouping-listing": "the same, sites filled one after another as the listing has it",
    "round-robin": "the paper's: operators in turn, to the site with the fewest (Algorithm 2)",
    "tiers": "ours: whole queries to regions, then balanced inside each",
    "exhaustive": "every table there is; for small problems only",
}
POLICY_NAMES: Mapping[str, str] = {
    "pays": "ours: moves that gain more than they cost, for what runs already",
    "balance": "the paper's: from the fullest site to the emptiest",
    "degradation": "the paper's: away from sites that have got worse",
}

Pattern = Callable[[Problem], dict[str, str]]
_PATTERNS: Mapping[str, Pattern] = {
    "balanced": balanced_or_best,
    "grouping": grouping,
    "grouping-listing": lambda problem: grouping(problem, by_listing=True),
    "round-robin": round_robin,
    "exhaustive": exhaustive,
}


@dataclass(frozen=True, slots=True)
class Distributed:
    pattern: str
    table: Mapping[str, str]
    usage: Usage
    beyond: tuple[str, ...]
    """Limits that are passed, in words: where no table was found that keeps them."""
    regions: Mapping[str, str] = field(default_factory=dict)
    """Query -> region; only of tiers."""


def distribute(problem: Problem, pattern: str = DEFAULT_PATTERN) -> Distributed:
    """An initial distribution. Raises UserError where none can be made, InternalError where the pattern's
    table is none."""
    regions: Mapping[str, str] = {}
    if pattern == "tiers":
        regions, table = distribute_tiers(problem)
    else:
        table = _PATTERNS[pattern](problem)
    wrong = next(misplaced(problem, table), "")
    if wrong:
        raise InternalError(f"distribution: {pattern}: {wrong}")
    used = usage(problem, table)
    beyond = tuple(text for _, text in passed(problem, used).values())
    return Distributed(pattern, {one.id: table[one.id] for one in problem.operators}, used, beyond, regions)
