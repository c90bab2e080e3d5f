"""Runs of the real planners on small set-ups, checked against `solve` and the checker's own sums."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from headrace.experiments.admission import runs
from headrace.experiments.admission.cases import SMALL, SMALLER, Run, Setting, Task
from headrace.experiments.admission.loaded import LEAST, MOST, timed
from headrace.experiments.admission.results import MARKS, Row
from headrace.experiments.admission.runs import MAKERS, run_all, run_task
from headrace.planners.admission.bound import optimistic
from headrace.planners.admission.check import usage
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.problem import Options
from headrace.planners.admission.solve import ceiling, solve
from headrace.planners.admission.workload import paper_problem

TINY = replace(SMALL, hosts=3, streams=20, queries=40, cpu=150.0, ways=(2, 3))


def row_of(run: Run, seed: int = 1) -> Row:
    (row,) = run_task(Task(TINY, seed, run, 1.0), time.perf_counter)
    return row


@pytest.mark.parametrize("planner", ["headrace", "heuristic", "soda"])
def test_a_row_is_what_solve_says(planner: str) -> None:
    problem = paper_problem(1, TINY)
    answer = solve(problem, planner, Options(seed=1), time.perf_counter)
    row = row_of(Run(planner))
    assert row.admitted == answer.admitted == row.curve[-1] < 40
    assert len(row.curve) == MARKS
    assert list(row.curve) == sorted(row.curve)
    decided = [decision.admitted for decision in answer.decisions]
    assert row.curve[MARKS // 2 - 1] == sum(decided[:20])


def test_bounds() -> None:
    problem = paper_problem(1, TINY)
    assert row_of(Run("bound")).admitted == optimistic(problem)
    assert row_of(Run("offline")).admitted == pytest.approx(ceiling(problem))


def test_every_planner_stays_below_the_offline_bound() -> None:
    most = row_of(Run("offline")).admitted + 1e-6
    assert all(row_of(Run(planner)).admitted <= most for planner in MAKERS if planner != "bound")


def test_batches_are_submitted_together() -> None:
    options = Options(seed=1, batch=5)
    answer = solve(paper_problem(1, TINY), "soda", options, time.perf_counter)
    row = row_of(Run("soda", 5))
    assert row.admitted == answer.admitted
    assert row.net_late != row_of(Run("soda")).net_late
    # 24 of 40 queries are no whole number of batches.
    assert max(row.cpu_late) > max(row.cpu_early) > 0


def test_load_after_three_fifths() -> None:
    problem = paper_problem(1, TINY)
    ours = Ours(problem, Options(seed=1), time.perf_counter)
    for query in problem.queries[:24]:
        ours.submit(query)
    used = usage(problem, ours.plan)
    row = row_of(Run("headrace"))
    assert row.cpu_late == pytest.approx([one / 150 for one in used["cpu"]], rel=1e-3)
    assert row.net_late == pytest.approx(
        [a + b for a, b in zip(used["in"], used["out"], strict=True)], rel=1e-3
    )
    assert max(row.cpu_early) < max(row.cpu_late)


@pytest.mark.parametrize("planner", ["headrace", "heuristic", "milp"])
def test_times_under_load(planner: str) -> None:
    found = timed(paper_problem(1, TINY), planner, 1.0, time.perf_counter)
    assert len(found.seconds) >= 4
    assert found.fit <= len(found.seconds)
    assert (LEAST, MOST) == (0.75, 0.95)
    if planner == "milp":
        assert found.proven == len(found.seconds)


def test_another_process_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(replace(SMALLER, ways=(2,)), 0, Run("headrace"), 1.0)
    monkeypatch.setattr(runs, "tasks_of", lambda setting: (task,))
    seen: list[tuple[int, int]] = []
    (there,) = run_all(Setting(workers=1), time.perf_counter, lambda *done: seen.append(done))
    (here,) = run_task(task, time.perf_counter)
    assert seen == [(0, 1), (1, 1)]
    assert replace(there, mean_ms=0.0, p99_ms=0.0) == replace(here, mean_ms=0.0, p99_ms=0.0)
