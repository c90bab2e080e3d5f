"""Lower bounds against the exact optimum of small problems, and against plans of large ones."""

from __future__ import annotations

import random
from statistics import mean

import pytest

from headrace.planners.sharing import lower_bound
from headrace.planners.sharing.brute_force import optimum, plan_costs, tree_cost
from headrace.planners.sharing.lower_bound import lower_bounds
from headrace.planners.sharing.problem import CostModel, SharingProblem, WindowQuery


def random_problem(
    rng: random.Random, cost: CostModel, *, queries: int = 6, largest: int = 30, even: bool = True
) -> SharingProblem:
    """Few distinct slides, so that classes of several queries with different ranges come up."""
    slides = [rng.randint(1, largest) for _ in range(max(2, queries - 1))]
    drawn = []
    for i in range(queries):
        slide = rng.choice(slides)
        drawn.append(WindowQuery(f"q{i}", rng.randint(1, 10 * slide), slide))
    capacities = tuple(1.0 if even else rng.choice((0.5, 1.0, 3.0)) for _ in range(rng.randint(1, 3)))
    return SharingProblem(rng.choice((0.0, 0.3, 3.0, 30.0, 100.0)), capacities, tuple(drawn), cost)


@pytest.mark.parametrize("paired", [0, 50])
@pytest.mark.parametrize("cost", ["paper", "true"])
def test_never_above_the_optimum(cost: CostModel, paired: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_bound, "_PAIRED", paired)
    rng = random.Random(paired)
    for number in range(30):
        problem = random_problem(rng, cost, queries=rng.randint(1, 6), even=number % 2 == 0)
        best, bound = optimum(problem), lower_bounds(problem)
        assert bound.total <= best.total, problem
        assert bound.max_load <= best.max_load, problem


@pytest.mark.parametrize("cost", ["paper", "true"])
def test_counting_the_cheap_classes_alone_is_still_a_bound(
    cost: CostModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(8)
    for _ in range(25):
        problem = random_problem(rng, cost)
        full, best = lower_bounds(problem), optimum(problem)
        with monkeypatch.context() as patch:
            patch.setattr(lower_bound, "_MOST", 3)
            bound = lower_bounds(problem)
        assert bound.total <= best.total
        assert bound.max_load <= best.max_load
        assert full.total > 0.99 * bound.total


def test_the_gap_is_small() -> None:
    rng = random.Random(2)
    problems = [random_problem(rng, "paper") for _ in range(40)]
    gaps = [1 - lower_bounds(p).total / optimum(p).total for p in problems]
    assert mean(gaps) < 0.08


def test_tight_for_one_query_and_for_equal_queries() -> None:
    one = SharingProblem(5.0, (1.0, 2.0), (WindowQuery("a", 7, 3),))
    assert lower_bounds(one).total == pytest.approx(tree_cost(one, [0]))
    assert lower_bounds(one).max_load == pytest.approx(tree_cost(one, [0]) / 2)
    same = SharingProblem(5.0, (1.0,), tuple(WindowQuery(f"q{i}", 8 + 4 * i, 4) for i in range(5)))
    assert lower_bounds(same).total == pytest.approx(tree_cost(same, range(5)))


def test_nothing_to_run_costs_nothing() -> None:
    assert lower_bounds(SharingProblem(5.0, (1.0,), ())) == lower_bound.LowerBounds(0.0, 0.0)


@pytest.mark.parametrize("cost", ["paper", "true"])
def test_between_a_tree_for_free_and_a_plan_of_many_queries(cost: CostModel) -> None:
    """Beyond brute force: no less than one tree whose edges are free, no more than some plan."""
    rng = random.Random(4)
    drawn = tuple(WindowQuery(f"q{i}", rng.randint(s, 9 * s), s) for i, s in enumerate(range(20, 110)))
    problem = SharingProblem(1.0, (1.0,) * 8, drawn, cost)
    plan = tuple(tuple((i,) for i in range(k, len(drawn), 8)) for k in range(8))
    total, nodes = plan_costs(problem, plan)
    bound = lower_bounds(problem)
    assert (total - len(drawn) + 1) * 0.999 < bound.total <= total
    assert bound.max_load <= max(nodes)
