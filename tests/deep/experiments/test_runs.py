"""Runs of the real optimisers on the paper's workloads, small and few."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from headrace.experiments.weaving import runs
from headrace.experiments.weaving.results import MAIN, OURS, OURS_FRONT, THIRTEEN, THREE, Row
from headrace.experiments.weaving.runs import (
    FORKS,
    Setting,
    Task,
    exact_costs,
    forks_of,
    run_all,
    run_task,
    runs_of,
    tasks_of,
)
from headrace.experiments.weaving.workload import EXPERIMENT_2, grid, workload
from headrace.planners.sharing.brute_force import plan_costs
from headrace.planners.sharing.edges import EdgeCounter
from headrace.planners.sharing.problem import Options, SharingProblem, WindowQuery
from headrace.planners.sharing.solve import solve

AS_SET = {
    "stop=prose",
    "insert=prose",
    "overlap=integer",
    "preprocess, stop=prose",
    "preprocess, insert=prose",
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Everything on one checked workload."""
    return run_task(Task(EXPERIMENT_2, 0, Setting(), check=True), time.perf_counter)


def test_every_optimiser_and_fork_has_its_row(rows: list[Row]) -> None:
    assert [row.optimiser for row in rows if row.reading == MAIN] == [*THIRTEEN, *THREE]
    forks = {row.reading for row in rows} - {MAIN}
    assert forks == {f.name for f in FORKS} - AS_SET


def test_costs_hold_when_computed_again(rows: list[Row]) -> None:
    assert all(row.check is not None and row.check < 1e-9 for row in rows)


def test_costs_are_the_exact_ones_of_solve(rows: list[Row]) -> None:
    problem = workload(EXPERIMENT_2, 0)
    at = {row.optimiser: row for row in rows if row.reading == MAIN}
    for name in ("G_TL", "W_TL", "WG_TN", "WG_I"):
        plan = solve(problem, name, Options(seed=0), clock=time.perf_counter)
        assert (at[name].total, at[name].max) == pytest.approx((plan.total_cost, plan.max_cost), rel=1e-9)
        assert sorted(at[name].nodes) == pytest.approx(sorted(node.cost for node in plan.nodes))


def test_the_front_is_a_front(rows: list[Row]) -> None:
    front = next(row.front for row in rows if row.optimiser == OURS_FRONT)
    assert front
    for total, peak in front:
        assert not any(t <= total and m <= peak and (t, m) != (total, peak) for t, m in front)


def test_real_overlaps_are_another_problem(rows: list[Row]) -> None:
    """Without sharing a query costs rate + edge rate * overlap: with offsets it has two edges a slide."""
    problem = workload(EXPERIMENT_2, 0, "real")
    wanted = sum(100 + Fraction(2 if q.offset else 1, q.slide) * q.overlap for q in problem.queries)
    real = next(row for row in rows if row.reading == "overlap=real" and row.optimiser == "G_RR")
    assert real.total == pytest.approx(float(wanted))


def test_readings_that_are_set_are_no_forks() -> None:
    setting = Setting(stop="listing", insert="literal", overlap="real")
    names = {fork.name for fork in forks_of(setting)}
    assert {"stop=prose", "insert=prose", "overlap=integer"} <= names
    assert not names & {"stop=listing", "insert=literal", "overlap=real"}
    main = list(runs_of(setting, 1))
    assert {run.reading for run in main} == {MAIN}, "forks run on the first repeat only"
    assert {(r.options.stop, r.options.insert, r.overlap) for r in main} == {("listing", "literal", "real")}


def test_the_sample_walks_through_all_values() -> None:
    tasks = tasks_of(Setting())
    checked = [task.parameters for task in tasks if task.check]
    assert len(tasks) == 768
    assert len(checked) >= 768 // 17
    for name in grid()[0].to_dict():
        assert {p.to_dict()[name] for p in checked} == {p.to_dict()[name] for p in grid()}


def test_exact_costs_of_the_papers_example() -> None:
    """Example 1: slides 2 and 4, ranges 6 and 8. Woven: an edge every 2, overlaps 3 + 2."""
    queries = (WindowQuery("a", 6, 2), WindowQuery("b", 8, 4), WindowQuery("c", 10, 5))
    problem = SharingProblem(10.0, (1.0, 1.0), queries)
    counter = EdgeCounter()
    assert exact_costs(problem, (((0, 1),), ((2,),)), counter) == [10 + Fraction(5, 2), 10 + Fraction(2, 5)]
    mixed = (((0,), (1, 2)), ())
    total, nodes = plan_costs(problem, mixed)
    assert (float(sum(exact_costs(problem, mixed, counter))), nodes[1]) == pytest.approx((float(total), 0))
    with pytest.raises(ValueError, match="exactly once"):
        exact_costs(problem, (((0, 1),), ((1, 2),)), counter)


def test_another_process_gives_the_same_plans(rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "quick_grid", lambda: (EXPERIMENT_2,))
    seen: list[tuple[int, int]] = []
    setting = Setting(1, True, workers=1)
    there = run_all(setting, time.perf_counter, lambda done, total: seen.append((done, total)))
    assert seen == [(0, 1), (1, 1)]
    assert [(row.optimiser, row.reading) for row in there] == [(row.optimiser, row.reading) for row in rows]
    for one, other in zip(there, rows, strict=True):
        if not one.optimiser.startswith(OURS):
            assert (one.total, one.max, one.nodes) == (other.total, other.max, other.nodes)
