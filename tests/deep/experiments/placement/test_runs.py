"""Runs of the real planners on small parts, checked against code that they do not share."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from headrace.experiments.placement import runs
from headrace.experiments.placement.cases import AIRLINE, SYNTHETIC, Part, Run, Setting, Task
from headrace.experiments.placement.operators import count_operators
from headrace.experiments.placement.results import Row
from headrace.experiments.placement.runs import run_all, run_task
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import Options, walk
from headrace.planners.placement.solve import solve
from headrace.planners.placement.top_down import TopDown

SMALL = replace(SYNTHETIC, sites=40, queries=8)
SMALL_AIRLINE = replace(AIRLINE, sites=40, queries=20)


def rows_of(part: Part, *wanted: Run) -> dict[Run, Row]:
    return {row.run: row for row in run_task(Task(part, 2, wanted), time.perf_counter)}


@pytest.fixture(scope="module")
def rows() -> dict[Run, Row]:
    planners = [
        Run("exact"),
        Run("exact", reuse=False),
        Run("top-down", 8),
        Run("npc", 8),
        Run("bottom-up", 8),
    ]
    planners += [Run("relaxation"), Run("in-network"), Run("plan-then-deploy"), Run("joint")]
    return rows_of(SMALL, *planners)


def test_rows_are_whole(rows: dict[Run, Row]) -> None:
    for run, row in rows.items():
        assert len(row.costs) == len(row.plans) == len(row.streams) == 8, run
        assert sum(row.costs) == pytest.approx(row.total, rel=1e-9), run
        assert len(row.seconds) == (0 if run.planner == "joint" else 8), run
        assert (row.height > 1) == (run.max_cs > 0), run
        assert sorted(row.streams) == sorted(len(query.streams) for query in SMALL.problem(2).queries)


def test_joins_are_what_is_left_of_the_streams_after_reuse(rows: dict[Run, Row]) -> None:
    alone = rows[Run("exact", reuse=False)]
    assert (alone.reused, alone.joins) == (0, sum(size - 1 for size in alone.streams))
    assert 0 < rows[Run("exact")].joins < alone.joins
    assert rows[Run("exact")].total < alone.total


def test_the_first_query_is_never_cheaper_than_exact(rows: dict[Run, Row]) -> None:
    best = rows[Run("exact")].costs[0]
    assert all(row.costs[0] >= best * (1 - 1e-9) for run, row in rows.items() if run.planner != "joint")
    assert rows[Run("joint")].total <= rows[Run("exact")].total * (1 + 1e-9)


def test_the_hierarchy_told_is_the_planners(rows: dict[Run, Row]) -> None:
    problem = SMALL.problem(2)
    top_down = TopDown(problem, prepare(problem.network), Options(seed=2, max_cs=8))
    row = rows[Run("top-down", 8)]
    hierarchy = top_down.hierarchy
    assert (row.height, row.top, row.bottom) == (
        hierarchy.height,
        len(hierarchy.top.members),
        len(hierarchy.clusters(1)),
    )


def test_operators_of_the_airline() -> None:
    """Joins against the table of advertisements; without reuse one filter for each query that has one."""
    problem = SMALL_AIRLINE.problem(2)
    for reuse in (True, False):
        made = replace(problem, reuse=reuse)
        plan = solve(made, "exact", Options(seed=2), time.perf_counter)
        trees = [(placed.query, placed.tree) for placed in plan.queries]
        joins, filters = count_operators(made, trees)
        deployed = Deployed(made, lambda a, b: 1.0)
        for query, (_, tree) in zip(made.queries, trees, strict=True):
            deployed.add(query, tree)
        assert joins == len(deployed.derived)
        if not reuse:
            assert filters == sum(len(query.filters) for query in made.queries)
            assert joins == sum(len(list(walk(tree))) // 2 for _, tree in trees)


def test_another_process_gives_the_same_rows(rows: dict[Run, Row], monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(SMALL, 2, (Run("top-down", 8), Run("exact")))
    monkeypatch.setattr(runs, "tasks_of", lambda setting: (task,))
    seen: list[tuple[int, int]] = []
    there = run_all(Setting(workers=1), time.perf_counter, lambda done, total: seen.append((done, total)))
    assert seen == [(0, 1), (1, 1)]
    assert [row.run for row in there] == [Run("exact"), Run("top-down", 8)]
    for row in there:
        known = rows[row.run]
        assert (row.costs, row.plans, row.joins, row.filters) == (
            known.costs,
            known.plans,
            known.joins,
            known.filters,
        )
