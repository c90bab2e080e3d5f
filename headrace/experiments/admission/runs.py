"""Run every planner on every problem, on several processes, and keep one row a run.

No planner is believed: the plan after the last query goes through the checker, and a plan that cannot run
stops the experiment. Times are those of planning alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from headrace.experiments.admission.cases import (
    BOUND,
    HEURISTIC,
    OFFLINE,
    OURS,
    SMALL,
    SODA,
    SODA_NAMED,
    SQPR,
    Run,
    Setting,
    Task,
    tasks_of,
    wanted_runs,
)
from headrace.experiments.admission.loaded import Timed, timed
from headrace.experiments.admission.results import MARKS, Row
from headrace.experiments.processes import Clock, OnProgress, run_tasks
from headrace.planners.admission.bound import Bound
from headrace.planners.admission.check import usage
from headrace.planners.admission.heuristic import Heuristic
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import (
    AdmissionAnswer,
    AdmissionProblem,
    Decision,
    Options,
    Plan,
    Query,
)
from headrace.planners.admission.soda import Soda
from headrace.planners.admission.solve import Batched, Planner, ceiling, checked
from headrace.planners.admission.sqpr import Sqpr

MAKERS: Mapping[str, Callable[[AdmissionProblem, Options, Clock], Planner]] = {
    OURS: Ours,
    SQPR: Sqpr,
    HEURISTIC: Heuristic,
    SODA: Soda,
    SODA_NAMED: partial(Soda, named=True),
    BOUND: Bound,
}
EARLY, LATE = 0.2, 0.6
"""Figures 7(b) and 7(c): after 50 and 150 of 250 queries."""


def run_all(setting: Setting, clock: Clock, on_progress: OnProgress) -> tuple[Row, ...]:
    """All rows, by figure, planner and seed."""
    rows = run_tasks(tasks_of(setting), run_task, warm_up, setting.workers, clock, on_progress)
    order = {key: i for i, key in enumerate(wanted_runs())}
    return tuple(sorted(rows, key=lambda row: (order[row.setup, row.run], row.seed)))


def run_task(task: Task, clock: Clock) -> list[Row]:
    problem = task.problem()
    blank = _blank(task, problem)
    if task.run.planner == OFFLINE:
        return [replace(blank, admitted=ceiling(problem))]
    options = Options(seed=task.seed, deadline=task.deadline if task.run.planner == SQPR else None)
    if task.run.loaded:
        return [_loaded_row(blank, timed(problem, task.run.planner, task.deadline, clock))]
    planner = MAKERS[task.run.planner](problem, options, clock)
    return [_row(blank, problem, planner, clock)]


def _blank(task: Task, problem: AdmissionProblem) -> Row:
    run = task.run
    deadline = task.deadline if run.planner == SQPR else 0.0
    size = (len(problem.hosts), len(problem.queries))
    return Row(task.name, task.seed, run.planner, run.batch, run.patience, run.loaded, deadline, *size, 0.0)


def _row(blank: Row, problem: AdmissionProblem, planner: Planner, clock: Clock) -> Row:
    decisions: list[Decision] = []
    looks: dict[int, Plan] = {round(share * len(problem.queries)): Plan() for share in (EARLY, LATE)}
    started = clock()
    for some in _batches(planner, problem.queries, blank.batch):
        before, decisions = len(decisions), [*decisions, *some]
        # A batch may step over the moment: then what runs after it.
        looks |= {at: planner.plan for at in looks if before < at <= len(decisions)}
    answer = AdmissionAnswer(blank.planner, tuple(decisions), planner.plan, clock() - started)
    if blank.planner != BOUND:
        checked(problem, answer)
    ms = 1000 * np.array([one.seconds for one in decisions])
    told = replace(
        blank,
        admitted=float(answer.admitted),
        curve=_curve(decisions),
        mean_ms=_short(ms.mean()),
        p99_ms=_short(np.percentile(ms, 99)),
        proven=sum(one.proven for one in decisions),
    )
    return told if blank.planner == BOUND else replace(told, **_used(problem, list(looks.values())))


def _batches(planner: Planner, queries: Sequence[Query], batch: int) -> Iterator[Sequence[Decision]]:
    if batch == 1:
        yield from ([planner.submit(query)] for query in queries)
    elif isinstance(planner, Batched):
        yield from (planner.submit_all(queries[at : at + batch]) for at in range(0, len(queries), batch))


def _curve(decisions: Sequence[Decision]) -> tuple[int, ...]:
    admitted = np.cumsum([one.admitted for one in decisions])
    at = np.linspace(0, len(decisions), MARKS + 1)[1:].round().astype(int) - 1
    return tuple(int(admitted[i]) for i in at)


def _used(problem: AdmissionProblem, plans: Sequence[Plan]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for when, plan in zip(("early", "late"), plans, strict=True):
        used = usage(problem, plan)
        limits = (host.cpu for host in problem.hosts)
        found[f"cpu_{when}"] = tuple(_short(a / b) for a, b in zip(used["cpu"], limits, strict=True))
        found[f"net_{when}"] = tuple(_short(a + b) for a, b in zip(used["in"], used["out"], strict=True))
    return found


def _loaded_row(blank: Row, found: Timed) -> Row:
    ms = tuple(_short(1000 * one) for one in found.seconds)
    return replace(blank, times=ms, proven=found.proven, admitted=float(found.fit))


def _short(value: float) -> float:
    """To four digits: more are noise, and make up most of the file."""
    return float(f"{value:.4g}")


def warm_up(clock: Clock) -> None:
    """Load solvers and whatever compiles, so that no measured run pays for it."""
    tiny = replace(SMALL, hosts=3, streams=9, queries=4)
    for planner in MAKERS:
        run_task(Task(tiny, 0, Run(planner), 1.0), clock)
