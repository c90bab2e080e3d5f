"""What is run: all of it once, and the same problem for the same seed."""

from __future__ import annotations

from collections import Counter

import numpy as np

from headrace.experiments.placement.cases import (
    AIRLINE,
    INTEGRATED,
    JOINT,
    OTHER_MODELS,
    PARTS,
    SYNTHETIC,
    TIMES,
    Setting,
    tasks_of,
)


def test_every_run_is_there_once_for_every_seed() -> None:
    tasks = tasks_of(Setting(seeds=20))
    found = Counter((task.part.name, run, task.seed) for task in tasks for run in task.runs)
    assert set(found.values()) == {1}
    seeds = Counter((name, run.planner, run.max_cs) for name, run, _ in found if run.reuse)
    for planner, size in (("exact", 0), ("top-down", 32), ("bottom-up", 4), ("npc", 16), ("joint", 0)):
        assert seeds[SYNTHETIC.name, planner, size] == 20
    assert seeds[AIRLINE.name, "relaxation", 0] == 20
    assert (seeds["growing", "joint", 0], seeds["growing", "exact", 0], seeds["sites-510", "npc", 32]) == (
        3,
        20,
        4,
    )
    assert {task.part.name for task in tasks} == {part.name for part in PARTS}


def test_slow_tasks_come_first() -> None:
    tasks = tasks_of(Setting(seeds=4))
    is_joint = [task.runs[0].planner == JOINT for task in tasks]
    assert is_joint == sorted(is_joint, reverse=True)
    assert tasks[-1].part.name == TIMES.name


def test_quick_runs_all_parts_with_fewer_seeds_and_queries() -> None:
    quick, whole = tasks_of(Setting(quick=True)), tasks_of(Setting())
    assert {task.part.name for task in quick} == {task.part.name for task in whole}
    assert len(quick) < len(whole) / 5
    assert max(task.part.queries for task in quick) == 100
    assert {task.seed for task in quick} == {0, 1}


def test_a_seed_makes_one_problem_and_models_share_all_but_the_rates() -> None:
    one, other = SYNTHETIC.problem(3), SYNTHETIC.problem(3)
    assert (one.network.links, one.queries) == (other.network.links, other.queries)
    assert SYNTHETIC.problem(4).queries != one.queries
    growing = OTHER_MODELS[1].problem(3)
    assert growing.queries == one.queries
    assert np.mean(list(growing.selectivities.values())) > np.mean(list(one.selectivities.values()))


def test_shapes_of_the_paper() -> None:
    fig2 = INTEGRATED.problem(0)
    assert (fig2.network.size, len(fig2.queries)) == (64, 100)
    assert {len(query.streams) for query in fig2.queries} == {5}
    assert {len(query.streams) for query in SYNTHETIC.problem(0).queries} == {3, 4, 5, 6}
    timed = TIMES.problem(0)
    assert (timed.network.size, len(timed.queries), len(timed.streams)) == (32, 25, 8)
    assert {len(query.streams) for query in timed.queries} <= {2, 3, 4}
    airline = AIRLINE.problem(0)
    assert Counter(query.id.split("-")[0] for query in airline.queries)["gate"] == 240


def test_the_command_says_what_was_run() -> None:
    assert Setting().command == "headrace experiment placement"
    assert Setting(seeds=5).command == "headrace experiment placement --seeds 5"
    assert Setting(quick=True).command == "headrace experiment placement --quick"
