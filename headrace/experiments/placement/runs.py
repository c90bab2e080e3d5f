"""Run every planner on every problem, on several processes, and keep one row a run.

Costs are what `recompute` finds from the trees: `solve` refuses a planner that says otherwise. Times are of
planning alone, one query after another in one thread, with kernels compiled and the network prepared before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from headrace.experiments.placement.cases import BY_HIERARCHY, PARTS, Run, Setting, Task, tasks_of
from headrace.experiments.placement.operators import count_operators
from headrace.experiments.placement.results import Row
from headrace.experiments.processes import Clock, OnProgress, run_tasks
from headrace.planners.placement.hierarchy import build
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import Network, Options, PlacementPlan, PlacementProblem
from headrace.planners.placement.solve import JOINT, solve, warm


def run_all(setting: Setting, clock: Clock, on_progress: OnProgress) -> tuple[Row, ...]:
    """All rows, by part, seed and run."""
    rows = run_tasks(tasks_of(setting), run_task, warm_up, setting.workers, clock, on_progress)
    order = {part.name: i for i, part in enumerate(PARTS)}
    return tuple(sorted(rows, key=lambda row: (order[row.part], row.seed, row.run)))


def run_task(task: Task, clock: Clock) -> list[Row]:
    problem = task.part.problem(task.seed)
    return [_row(task, run, replace(problem, reuse=run.reuse), clock) for run in task.runs]


def _row(task: Task, run: Run, problem: PlacementProblem, clock: Clock) -> Row:
    options = _options(run, task.seed)
    plan = solve(problem, run.planner, options, clock)
    sizes = {query.id: len(query.streams) for query in problem.queries}
    joins, filters = count_operators(problem, [(placed.query, placed.tree) for placed in plan.queries])
    height, top, bottom = _levels(problem.network, run, options)
    return Row(
        task.part.name,
        task.seed,
        run.planner,
        run.max_cs,
        run.reuse,
        plan.total_cost,
        tuple(placed.cost for placed in plan.queries),
        tuple(placed.plans_examined for placed in plan.queries),
        _seconds(plan),
        tuple(sizes[placed.query] for placed in plan.queries),
        plan.seconds,
        plan.prepare_seconds,
        sum(len(placed.reused) for placed in plan.queries),
        joins,
        filters,
        height,
        top,
        bottom,
    )


def _options(run: Run, seed: int) -> Options:
    return Options(seed=seed, max_cs=run.max_cs) if run.max_cs else Options(seed=seed)


def _seconds(plan: PlacementPlan) -> tuple[float, ...]:
    """To three digits: more are noise, and make up most of the file."""
    return () if plan.planner == JOINT else tuple(float(f"{one.seconds:.3g}") for one in plan.queries)


def _levels(network: Network, run: Run, options: Options) -> tuple[int, int, int]:
    """Height, members of the highest cluster and number of the lowest ones, of the hierarchy that the planner
    built: the same seed builds it again."""
    if run.planner not in BY_HIERARCHY:
        return 0, 0, 0
    hierarchy = build(prepare(network), options.max_cs, options.seed)
    return hierarchy.height, len(hierarchy.top.members), len(hierarchy.clusters(1))


def warm_up(clock: Clock) -> None:
    """Compile or load the kernels, so that no measured run pays for it."""
    for planner in sorted({run.planner for run in chain.from_iterable(part.runs for part in PARTS)}):
        warm(planner, clock)
