"""Run a planner by its name: the queries one after another, each against all that runs before it.

What a planner says a query costs is never believed: `recompute` works it out again from the trees, its
figures go into the answer, and a planner that differs is our bug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from headrace.errors import InternalError, UserError
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.network import Prepared, prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Network,
    Options,
    Placed,
    PlacementPlan,
    PlacementProblem,
    Query,
    Tree,
    walk,
)
from headrace.planners.placement.reach import check_reach
from headrace.planners.placement.recompute import WrongDeployment, recompute

Clock = Callable[[], float]
Joint = Callable[[PlacementProblem, Prepared, Options, Clock], PlacementPlan]
Progress = Callable[[int, int], None]
"""Told after each query: how many are placed, of how many."""

DEFAULT_PLANNER = "exact"
JOINT = "joint"
LIMITED = "limited"
"""What takes the default's place where sites have limits of cpu."""
PLANNERS: Mapping[str, str] = {
    "exact": "ours: the cheapest deployment of each query, given all that runs, by dynamic programming",
    "joint": "ours: all queries against each other, planned again and again in turn",
    "top-down": "the paper's: from the top of a hierarchy of clusters down to the sites",
    "bottom-up": "the paper's: from the sink's cluster up, joining what is found on the way",
    "npc": "the paper's hybrid: bottom-up, deciding later where that promises a lower net present cost",
    "relaxation": "join order first, then joins pulled by springs in a cost space of 3 dimensions",
    "in-network": "join order first, then each join in the best zone of the network",
    "plan-then-deploy": "join order first, then the best sites for it",
    "exhaustive": "every join order at every choice of sites; for small problems only",
}
"""Names and what they do, in one line; the default comes first."""

_WHERE: Mapping[str, str] = {
    "exact": "exact.Exact",
    "top-down": "top_down.TopDown",
    "bottom-up": "bottom_up.BottomUp",
    "npc": "npc.Npc",
    "relaxation": "relaxation.Relaxation",
    "in-network": "in_network.InNetwork",
    "plan-then-deploy": "plan_then_deploy.PlanThenDeploy",
    "exhaustive": "exhaustive.Exhaustive",
    LIMITED: "limits.Limited",
    JOINT: "joint.solve_joint",
}
"""Modules, each with the class that takes one query after another, or the function that takes all. They are
loaded when asked for, since some compile."""

SAME = 1e-9
"""By how much, relatively, a planner's cost may differ from the recomputed one."""
ROUNDING = 1e-12
"""What adding a query costs is a difference of totals, so it is only as exact as they are."""


class Planner(Protocol):
    """Made once for a problem, then given one query after another."""

    def place(self, query: Query, deployed: Deployed) -> Placed: ...


def solve(
    problem: PlacementProblem,
    planner: str,
    options: Options,
    clock: Clock,
    on_progress: Progress | None = None,
) -> PlacementPlan:
    """The deployment of all queries. Raises UserError where a query cannot be deployed, and InternalError
    where the planner's deployment or its cost is wrong."""
    check_reach(problem)
    compiled = warm(planner, clock)
    started = clock()
    prepared = prepare(problem.network)
    network = clock() - started
    plan = _planned(problem, prepared, planner, options, clock, on_progress)
    plan = replace(plan, prepare_seconds=network + plan.prepare_seconds, compile_seconds=compiled)
    return checked(problem, plan, prepared)


def checked(problem: PlacementProblem, plan: PlacementPlan, prepared: Prepared) -> PlacementPlan:
    """The plan with recomputed costs. Raises InternalError where it is no deployment of the queries, or where
    the planner believed in other costs."""
    trees = [(placed.query, placed.tree) for placed in plan.queries]
    if sorted(name for name, _ in trees) != sorted(query.id for query in problem.queries):
        raise InternalError(f"placement: {plan.planner} does not deploy every query once")
    try:
        total, added = recompute(problem, trees, prepared.distance)
    except WrongDeployment as error:
        raise InternalError(f"placement: {plan.planner} gives no deployment: {error}") from error
    so_far = 0.0
    for placed, cost in zip(plan.queries, added, strict=True):
        so_far += cost
        _check_cost(plan.planner, placed, cost, so_far)
    queries = tuple(replace(one, cost=cost) for one, cost in zip(plan.queries, added, strict=True))
    return replace(plan, queries=queries, total_cost=total)


def new_joins(tree: Tree) -> int:
    """How many joins a query deploys itself."""
    return sum(isinstance(node, Join) for node in walk(tree))


def _check_cost(planner: str, placed: Placed, cost: float, total: float) -> None:
    """Written so that NaN fails."""
    allowed = max(SAME * max(abs(placed.cost), abs(cost)), ROUNDING * abs(total))
    if not abs(placed.cost - cost) <= allowed:
        raise InternalError(
            f"placement: {planner} says that {placed.query} adds {placed.cost!r}, but it adds {cost!r}"
        )


def _planned(
    problem: PlacementProblem,
    prepared: Prepared,
    name: str,
    options: Options,
    clock: Clock,
    on_progress: Progress | None = None,
) -> PlacementPlan:
    if name == JOINT:
        _check_cpu(problem, name)
        joint: Joint = _loaded(_WHERE[JOINT])
        return joint(problem, prepared, options, clock)
    started = clock()
    planner = _made(name, problem, prepared, options)
    ready = clock()
    placed = _placed(problem.queries, planner, Deployed(problem, prepared.distance), clock, on_progress)
    return PlacementPlan(
        planner=name,
        queries=tuple(placed),
        total_cost=sum(one.cost for one in placed),
        seconds=clock() - ready,
        prepare_seconds=ready - started,
        compile_seconds=0.0,
    )


def _placed(
    queries: Sequence[Query],
    planner: Planner,
    deployed: Deployed,
    clock: Clock,
    on_progress: Progress | None,
) -> list[Placed]:
    found: list[Placed] = []
    for query in queries:
        started = clock()
        placed = planner.place(query, deployed)
        found.append(replace(placed, seconds=clock() - started))
        deployed.add(query, placed.tree)
        if on_progress is not None:
            on_progress(len(found), len(queries))
    return found


def _made(name: str, problem: PlacementProblem, prepared: Prepared, options: Options) -> Planner:
    if problem.cpu:
        _check_cpu(problem, name)
        name = LIMITED
    make: Callable[[PlacementProblem, Prepared, Options], Planner] = _loaded(_WHERE[name])
    return make(problem, prepared, options)


def _check_cpu(problem: PlacementProblem, name: str) -> None:
    if problem.cpu and name != DEFAULT_PLANNER:
        raise UserError(f"{name} keeps no limits of cpu", hint=f"{DEFAULT_PLANNER} does.")


def _loaded(path: str) -> Any:
    return getattr(_module(path), path.split(".")[1])


def _module(path: str) -> ModuleType:
    return import_module(f"headrace.planners.placement.{path.split('.')[0]}")


_COMPILED: set[str] = set()


def warm(name: str, clock: Clock) -> float:
    """Load a planner and compile its kernels, or load them from the cache: by its own `warm` if it has one,
    otherwise by a small problem. The seconds it took; 0 the next time."""
    if name in _COMPILED:
        return 0.0
    started = clock()
    own: Callable[[], None] | None = getattr(_module(_WHERE[name]), "warm", None)
    if own is not None:
        own()
    else:
        problem = _small()
        _planned(problem, prepare(problem.network), name, Options(iterations=10, seconds=0.01), clock)
    _COMPILED.add(name)
    return clock() - started


def _small() -> PlacementProblem:
    """Three sites in a row, and a query that can reuse what another made."""
    network = Network((0, 1, 2), ((0, 1, 1.0), (1, 2, 1.0)))
    streams = {name: BaseStream(name, site, 1.0 + site) for site, name in enumerate("abc")}
    queries = (Query("x", ("a", "b"), 2), Query("y", ("a", "b", "c"), 0))
    return PlacementProblem(network, streams, {frozenset("ab"): 0.5}, queries)
