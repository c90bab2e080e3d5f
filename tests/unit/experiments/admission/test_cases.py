"""What is run: all of it once, and what the figures need."""

from __future__ import annotations

from collections import Counter

from headrace.experiments.admission.cases import (
    BASE,
    POINTS,
    SMALL,
    SQPR,
    Run,
    Setting,
    setup_name,
    tasks_of,
)
from headrace.planners.admission.soda_workload import CLUSTER
from headrace.planners.admission.workload import PAPER


def test_every_run_is_there_once_for_every_seed() -> None:
    tasks = tasks_of(Setting(seeds=5, milp_seeds=1))
    found = Counter((task.name, task.run, task.seed) for task in tasks)
    assert set(found.values()) == {1}
    seeds = Counter((task.setup, task.run) for task in tasks)
    assert (seeds[BASE, Run("headrace")], seeds[BASE, Run(SQPR)]) == (5, 1)
    assert (seeds[CLUSTER, Run("soda")], seeds[CLUSTER, Run(SQPR)]) == (5, 2)
    assert seeds[SMALL, Run("headrace")] == seeds[SMALL, Run(SQPR)] == 1
    assert {task.name for task in tasks} == {point.name for point in POINTS}


def test_names_tell_all_set_ups_apart() -> None:
    setups = {point.setup for point in POINTS} | {PAPER}
    assert len({setup_name(setup) for setup in setups}) == len(setups)


def test_without_sqpr() -> None:
    tasks = tasks_of(Setting(milp_seeds=0))
    assert SQPR not in {task.run.planner for task in tasks}
    assert Run("headrace") in {task.run for task in tasks if task.setup == SMALL}


def test_slow_runs_come_first_and_deadlines_are_as_asked() -> None:
    tasks = tasks_of(Setting(deadline=2.0))
    assert (tasks[0].setup, tasks[0].run, tasks[0].deadline) == (BASE, Run(SQPR), 2.0)
    assert {task.deadline for task in tasks if task.run.patience < 1} == {0.4}


def test_quick_is_small_and_has_everything() -> None:
    quick, whole = tasks_of(Setting(quick=True)), tasks_of(Setting())
    assert {(task.name, task.run) for task in quick} == {(task.name, task.run) for task in whole}
    assert max(len(task.problem().hosts) for task in quick) <= 12
    assert max(len(task.problem().hosts) for task in quick if task.run.planner == SQPR) <= 8


def test_the_command_says_what_differs() -> None:
    assert Setting().command == "headrace experiment admission"
    told = "headrace experiment admission --quick --seeds 2 --milp-seeds 0 --deadline 0.5"
    assert Setting(2, 0, 0.5, quick=True).command == told
