"""Run an optimiser by its name, and report its plan with costs that are computed again, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from headrace.planners.sharing import blind, inserted, lowest, to_nodes
from headrace.planners.sharing.instance import Instance, instance_of
from headrace.planners.sharing.ours import default_seconds, ours, ours_front
from headrace.planners.sharing.problem import (
    Assignment,
    FrontPoint,
    Options,
    SharingPlan,
    SharingProblem,
    WindowQuery,
)
from headrace.planners.sharing.rates import rates_of
from headrace.planners.sharing.report import quick_costs, report
from headrace.planners.sharing.true_cost import TruePlans, needs_true_cost

Clock = Callable[[], float]
Optimiser = Callable[[Instance, Options], Assignment]

DEFAULT_OPTIMISER = "headrace"
FRONT_SECONDS = 0.28
"""What a front takes where no time is given."""

PAPER: Mapping[str, Optimiser] = {
    "G_RAND": blind.g_rand,
    "G_RR": blind.g_rr,
    "G_TL": lowest.g_tl,
    "W_RAND": blind.w_rand,
    "W_RR": blind.w_rr,
    "W_TL": lowest.w_tl,
    "W_TN": to_nodes.w_tn,
    "W_I": inserted.w_i,
    "WG_RAND": blind.wg_rand,
    "WG_RR": blind.wg_rr,
    "WG_TL": lowest.wg_tl,
    "WG_TN": to_nodes.wg_tn,
    "WG_I": inserted.wg_i,
}
"""The thirteen of Table 1."""

SINGLE: Mapping[str, Optimiser] = {
    "WEAVE_SHARE": to_nodes.weave_share_on_one,
    "INSERT_THEN_WEAVE": inserted.insert_then_weave,
}

OPTIMISERS: Mapping[str, str] = {
    "headrace": "ours: WeaveShare, balanced assignment, then local search on total and maximum together",
    "G_RAND": "every query its own tree, on a random node",
    "G_RR": "every query its own tree, nodes in turn",
    "G_TL": "every query its own tree, dearest first to the cheapest node",
    "W_RAND": "one tree a node, queries to random nodes",
    "W_RR": "one tree a node, queries to nodes in turn",
    "W_TL": "one tree a node, dearest query first to the cheapest node",
    "W_TN": "WeaveShare until there are as many trees as nodes",
    "W_I": "one tree a node, each query to the node that is cheapest with it",
    "WG_RAND": "random node, then a random choice of weaving or a new tree",
    "WG_RR": "nodes in turn, weaving and new trees in turn",
    "WG_TL": "dearest query first to the cheapest node: woven into its cheapest tree or a new tree",
    "WG_TN": "WeaveShare, then dearest tree first to the cheapest node",
    "WG_I": "each query into the best tree of all nodes, or a new tree on the cheapest node",
    "WEAVE_SHARE": "the single-node algorithm, all trees on one node",
    "INSERT_THEN_WEAVE": "the single-node insertion, all trees on one node",
}
"""Names and what they do, in one line."""


@dataclass(frozen=True, slots=True)
class Quick:
    """A plan with the costs its search believes in (floats), for experiments with thousands of plans."""

    assignment: Assignment
    total: float
    max_load: float
    seconds: float
    front: tuple[FrontPoint, ...] = ()


def plan_fast(problem: SharingProblem, optimiser: str, options: Options, *, clock: Clock) -> Quick:
    """Search, and cost the answer in floats."""
    warm(clock)
    started = clock()
    instance = instance_of(problem)
    if optimiser == DEFAULT_OPTIMISER:
        assignment = _ours(problem, instance, options, clock, started)
    else:
        assignment = _paper(problem, instance, optimiser, options)
    seconds = clock() - started
    total, max_load = quick_costs(instance, assignment)
    return Quick(assignment, total, max_load, seconds)


def _ours(
    problem: SharingProblem, instance: Instance, options: Options, clock: Clock, started: float
) -> Assignment:
    if not needs_true_cost(problem):
        return ours(instance, options, clock, started)
    plans = [point.assignment for point in ours_front(instance, options, clock, started)]
    return TruePlans(problem, options.balance).best(plans, to_nodes.wg_tn(instance, options))


def front_fast(problem: SharingProblem, options: Options, *, clock: Clock) -> Quick:
    """Our Pareto front; its first point has the lowest total, its last the lowest maximum. Without a time of
    its own it gets more than one plan does."""
    warm(clock)
    started = clock()
    instance = instance_of(problem)
    seconds = options.seconds or max(FRONT_SECONDS, default_seconds(instance))
    front = ours_front(instance, replace(options, seconds=seconds), clock, started)
    seconds = clock() - started
    first = front[0]
    return Quick(first.assignment, first.total_cost, first.max_cost, seconds, front)


def solve(
    problem: SharingProblem, optimiser: str, options: Options, *, clock: Clock, front: bool = False
) -> SharingPlan:
    """The plan of an optimiser, reported exactly."""
    compiled = warm(clock)
    quick = plan_fast(problem, optimiser, options, clock=clock)
    points = front_fast(problem, options, clock=clock).front if front else ()
    return report(
        problem, optimiser, quick.assignment, seconds=quick.seconds, compiled=compiled, front=points
    )


def _paper(problem: SharingProblem, instance: Instance, optimiser: str, options: Options) -> Assignment:
    run = PAPER.get(optimiser) or SINGLE[optimiser]
    if not options.preprocess:
        return run(instance, options)
    bundles = instance.members()
    return _unbundled(run(bundled(instance, bundles), options), bundles)


def bundled(instance: Instance, bundles: list[list[int]]) -> Instance:
    """The instance after the identical-slide preprocessing: one query a class, with the overlap of all its
    queries."""
    return Instance(
        instance.rate,
        instance.capacity,
        np.arange(len(bundles), dtype=np.int64),
        np.array([instance.omega[members].sum() for members in bundles]),
        instance.events,
        instance.rates,
        instance.single,
    )


def _unbundled(assignment: Assignment, bundles: list[list[int]]) -> Assignment:
    return tuple(
        tuple(tuple(sorted(q for bundle in tree for q in bundles[bundle])) for tree in trees)
        for trees in assignment
    )


_COMPILED: list[float] = []


def warm(clock: Clock) -> float:
    """Compile the kernels, or load them from the cache, once a process. The seconds it took."""
    if not _COMPILED:
        _COMPILED.append(_warm(clock))
    return _COMPILED[0]


def _warm(clock: Clock) -> float:
    started = clock()
    windows = [(4, 2), (6, 3), (7, 4), (10, 5), (9, 6), (4, 2)]
    queries = tuple(WindowQuery(f"q{i}", r, s) for i, (r, s) in enumerate(windows))
    problem = SharingProblem(10.0, (1.0, 1.0), queries)
    for instance in (instance_of(problem), _without_table(problem)):
        for run in (lowest.w_tl, to_nodes.wg_tn, inserted.wg_i):
            run(instance, Options())
        ours(instance, Options(seconds=0.01), clock)
    return clock() - started


def _without_table(problem: SharingProblem) -> Instance:
    """The same instance by the other method of reading rates, so that it is compiled too."""
    made = instance_of(problem)
    rates = rates_of(made.events, most_cells=0)
    return Instance(made.rate, made.capacity, made.klass, made.omega, made.events, rates, made.single)
