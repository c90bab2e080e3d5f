"""Results by a formula: at n sites grouping has n more connections than ours has, round robin twice as many,
and capacities are 100 rows/s at one site and so many more at each other one."""

from __future__ import annotations

from headrace.experiments.distribution.cases import (
    FILLED,
    GROUPING,
    OFF,
    OURS,
    PATTERNS,
    PLANS,
    POLICIES,
    POLICY_SITES,
    ROUND_ROBIN,
    SITES,
    STARTS,
)
from headrace.experiments.distribution.prices import Prices
from headrace.experiments.distribution.results import (
    AnyRow,
    MovedJoin,
    Placed,
    Priced,
    Ran,
    Rebalanced,
    Recovered,
    Results,
)

PRICES = Prices(0.01, 0.02, 1e-5, 0.05, 3e-5, 1e-6)
MORE = {ROUND_ROBIN: 10.0, GROUPING: 20.0, OURS: 40.0}
"""Rows a second that every further site brings."""
DONE = {OFF: 0.5, "balance": 0.8, "degradation": 0.9, "pays": 1.0}
SEEDS = 2


def placed(plan: str, sites: int, seed: int, pattern: str) -> Placed:
    size = int(plan.split(" ")[0])
    cuts = 0 if sites == 1 else {ROUND_ROBIN: 2 * size, GROUPING: size + sites, OURS: size}[pattern]
    capacity = 100 + MORE[pattern] * (sites - 1)
    return Placed(
        plan, sites, seed, pattern, 7 + cuts, 3, 3, 40 / capacity, 1.0, capacity, 1e4 / sites, 1.0 + seed
    )


def rebalanced(plan: str, sites: int, seed: int, start: str, policy: str, filled: float) -> Rebalanced:
    share = DONE[policy]
    done = tuple(share * (minute + 1) for minute in range(30))
    moves = 0 if policy == OFF else (17 if start == ROUND_ROBIN else 4)
    return Rebalanced(plan, sites, seed, start, policy, filled, 0.5, share, moves, min(moves, 1), done)


def ran(plan: str, sites: int, patterns: tuple[str, ...], cores: float = 0.2, out: int = 1000) -> Ran:
    cpu = tuple(10.0 * cores for _ in range(sites))
    counts = tuple((1.0, 2.0, 80.0, 1.0, 160.0, 80.0) for _ in range(sites))
    curve = tuple((float(second), out * second / 10) for second in range(11))
    return Ran(plan, sites, patterns, sites, 9, 10.0, 400, out, 1000.0, cpu, 0.5, counts, 300, 0.4, curve)


def moved(moves: int, rows: int = 1000, missing: int = 0) -> MovedJoin:
    curve = tuple((float(second), rows * second / 10) for second in range(11))
    pauses = (1.5, 2.0, 2.5)[:moves]
    return MovedJoin(
        moves, moves, pauses, 10.0, 400, rows, rows - missing, missing, 0, 5.0, curve, (3.0, 5.0, 7.0)[:moves]
    )


def recovered(start: str, policy: str, rows: int) -> Recovered:
    curve = tuple((float(second), rows * second / 10) for second in range(11))
    jobs = 0 if policy == OFF else 2
    return Recovered(
        start, policy, 200.0, 10.0, 4000, rows, 1000.0, jobs, (5.0, 5.0), curve, 4.0, (2.0,) * jobs
    )


def model() -> list[AnyRow]:
    rows: list[AnyRow] = [
        placed(plan, sites, seed, pattern)
        for plan in PLANS
        for sites in SITES
        for seed in range(SEEDS)
        for pattern in PATTERNS
    ]
    rows += [
        rebalanced(plan, sites, seed, start, policy, filled)
        for plan in ("20", "40", "80")
        for sites in POLICY_SITES
        for seed in range(SEEDS)
        for start in STARTS
        for policy in POLICIES
        for filled in FILLED
    ]
    return rows


def measured() -> list[AnyRow]:
    turns, grouped = (ROUND_ROBIN,), (GROUPING, OURS)
    runs = [ran(plan, 1, PATTERNS) for plan in ("5", "5 joins", "20")]
    runs += [ran("5", 5, PATTERNS), ran("20", 5, turns), ran("20", 5, grouped)]
    runs += [ran("5 joins", 4, turns), ran("5 joins", 4, grouped)]
    return [
        *runs,
        moved(0),
        moved(3, 970),
        recovered("good", OFF, 1000),
        recovered("bad", OFF, 600),
        recovered("bad", "pays", 950),
    ]


def results(*, real: bool = True) -> Results:
    priced = Priced(PRICES, 20 if real else 0, 0.1)
    rows = (priced, *(measured() if real else ()), *model())
    return Results(rows, {"command": "made up", "seconds": 1.0, "clock": "wall"})
