"""The model: patterns and policies on the paper's plans, with prices. No engine.

A pipeline is as fast as its slowest site. A site that is asked for more than its core does the part of its
work that it has time for, and all that comes in is done as far as the slowest site does it. A round of a
minute: a policy looks, moves what it wants to, and each move holds the plan up for its pause. Prices are
those of a full site (`Prices.stretched`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headrace.experiments.distribution.cases import (
    FILLED,
    GROUPING,
    MINUTES,
    OFF,
    OURS,
    PATTERNS,
    PLANS,
    POLICIES,
    POLICY_SITES,
    ROUND_ROBIN,
    SITES,
    STARTS,
    STREAM_RATE,
    Setting,
    plan_named,
)
from headrace.experiments.distribution.prices import Prices, capacity, loads, priced
from headrace.experiments.distribution.results import Placed, Rebalanced
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.plans import ROW_BYTES
from headrace.planners.distribution.problem import Problem, Table
from headrace.planners.distribution.redistribute import redistribute
from headrace.planners.distribution.rules import History, Rules
from headrace.planners.distribution.solve import distribute
from headrace.planners.distribution.usage import usage

Clock = Callable[[], float]
MINUTE = 60.0
PAUSE = 2.5
"""Seconds that a move holds the plan up: the issue's bar for a job on Spark is 3."""
POLICY_SEEDS = 5


@dataclass(frozen=True, slots=True)
class Task:
    """One plan on some sites: its patterns, and the policies where there are any."""

    plan: str
    sites: int
    seed: int
    prices: Prices
    policies: bool


def tasks(setting: Setting, prices: Prices) -> list[Task]:
    """The long ones first."""
    found = [
        Task(plan, sites, seed, prices, _has_policies(plan, sites, seed))
        for plan in PLANS
        for sites in SITES
        for seed in range(setting.seeds if plan.isdecimal() and plan != "5" else 1)
    ]
    return sorted(found, key=lambda task: (not task.policies, -int(task.plan.split(" ")[0])))


def _has_policies(plan: str, sites: int, seed: int) -> bool:
    return plan in ("20", "40", "80") and sites in POLICY_SITES and seed < POLICY_SEEDS


def run_task(task: Task, clock: Clock) -> Sequence[Placed | Rebalanced]:
    problem = plan_named(task.plan, task.sites, task.seed)
    found: list[Placed | Rebalanced] = []
    # Patterns see the prices, as ours needs them.
    known = priced(problem, task.prices, STREAM_RATE)
    for pattern in PATTERNS:
        began = clock()
        table = distribute(known, pattern).table
        took = clock() - began
        found.append(placed(task, problem, known, pattern, table, took))
    if task.policies:
        found += policies(task, problem)
    return found


def placed(
    task: Task, problem: Problem, known: Problem, pattern: str, table: Table, seconds: float
) -> Placed:
    used = usage(known, table)
    load = loads(problem, table, task.prices)
    joins = [sum(known.operator[o].kind == "join" for o in one.operators) for one in used.sites.values()]
    kept = [sum(known.operator[o].state_bytes for o in one.operators) for one in used.sites.values()]
    return Placed(
        task.plan,
        task.sites,
        task.seed,
        pattern,
        used.connections.total,
        used.max_connections,
        max(joins),
        _rounded(max(load.values())),
        _rounded(sum(load.values())),
        _rounded(capacity(problem, table, task.prices)),
        _rounded(max(kept) / ROW_BYTES),
        _rounded(1e3 * seconds),
    )


# -- redistribution -----------------------------------------------------------------------------------


def policies(task: Task, problem: Problem) -> list[Rebalanced]:
    good = distribute(priced(problem, task.prices, STREAM_RATE), OURS).table
    found = []
    for filled in FILLED:
        rate = max(1.0, capacity(problem, good, task.prices, filled))
        known = priced(problem, task.prices, rate)
        starts = {start: starting(known, start) for start in STARTS}
        found += [
            rebalanced(task, known, start, policy, table, filled)
            for start, table in starts.items()
            for policy in POLICIES
        ]
    return found


def starting(problem: Problem, start: str) -> Table:
    if start in (ROUND_ROBIN, GROUPING):
        return distribute(problem, start).table
    return dict.fromkeys(problem.operator, problem.sites[0].id)


def rebalanced(
    task: Task, problem: Problem, start: str, policy: str, table: Table, filled: float
) -> Rebalanced:
    """Minute by minute. What cannot be done in time waits, and is done as soon as there is room."""
    before = share(problem, table)
    # What sites had when all was well: degradation compares with it.
    history = History(baseline={site.id: filled for site in problem.sites})
    rules = Rules(full=FILLED[filled])
    done, came, moves, rounds = 0.0, 0.0, 0, 0
    curve: list[float] = []
    for minute in range(MINUTES):
        moved = 0
        if policy != OFF:
            now = replace(problem, table=table)
            decision = redistribute(now, policy, MODELS["cpu"], rules, history, MINUTE * minute)
            table, history, moved = decision.table, decision.history, len(decision.moves)
        moves, rounds, came = moves + moved, rounds + bool(moved), came + 1
        # Moves of one round go on at the same time: they hold the plan up once.
        working = 1 - (PAUSE / MINUTE if moved else 0)
        done = min(came, done + working / usage(problem, table).max_load)
        curve.append(_rounded(done))
    return Rebalanced(
        task.plan,
        task.sites,
        task.seed,
        start,
        policy,
        filled,
        _rounded(before),
        _rounded(share(problem, table)),
        moves,
        rounds,
        tuple(curve),
    )


def share(problem: Problem, table: Table) -> float:
    """Of what comes in, that the slowest site does in time."""
    return min(1.0, 1 / usage(problem, table).max_load)


def warm_up(clock: Clock) -> None:
    clock()


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
