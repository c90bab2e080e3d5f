"""Results nobody ran: every run of every part, with totals set to show one thing."""

from __future__ import annotations

from collections.abc import Callable

from headrace.experiments.placement.cases import BY_HIERARCHY, PARTS, Part, Run
from headrace.experiments.placement.results import Results, Row

QUERIES = 6
ValueOf = Callable[[Part, Run, int], float]
"""(part, run, seed) -> something of the run."""


def results(
    total: ValueOf = lambda part, run, seed: 100.0 + seed,
    plans: ValueOf = lambda part, run, seed: 8.0,
    joins: ValueOf = lambda part, run, seed: 5.0,
    seconds: ValueOf = lambda part, run, seed: 0.001,
    seeds: int = 3,
) -> Results:
    rows = tuple(
        _row(part, run, seed, total(part, run, seed), plans(part, run, seed), joins(part, run, seed),
             seconds(part, run, seed))
        for part in PARTS
        for seed in part.seeds_of(seeds)
        for run in part.runs
        if run.seeds is None or seed < run.seeds
    )  # fmt: skip
    return Results(rows, {"command": "none", "date": "2026-11-16", "machine": "none", "seconds": 1.0})


def _row(part: Part, run: Run, seed: int, total: float, plans: float, joins: float, seconds: float) -> Row:
    """All queries cost the same; their sizes go round."""
    levels = (2, 4, 8) if run.planner in BY_HIERARCHY else (0, 0, 0)
    low, high = part.joins[0] + 1, part.joins[1] + 1
    return Row(
        part.name,
        seed,
        run.planner,
        run.max_cs,
        run.reuse,
        total,
        (total / QUERIES,) * QUERIES,
        (int(plans),) * QUERIES,
        () if run.planner == "joint" else (seconds,) * QUERIES,
        tuple(low + i % (high - low + 1) for i in range(QUERIES)),
        seconds * QUERIES,
        0.5,
        7,
        int(joins),
        3,
        *levels,
    )
