"""Definition 1: the three situations of section 4, and ties."""

from __future__ import annotations

from headrace.planners.federation.compare import rank
from headrace.planners.federation.problem import FEASIBLE, Options, Split


def test_situation_1_the_feasible_plan_wins_whatever_it_takes() -> None:
    assert rank(1.0, 1.6) < rank(1.0001, 1.5)
    assert rank(1.0, 1.6) < rank(0.9, 1.7)  # exactly 1 still keeps up


def test_situation_2_of_feasible_plans_the_one_with_less_utilisation_wins() -> None:
    assert rank(0.9, 2.0) < rank(0.3, 2.1)


def test_situation_3_of_infeasible_plans_the_one_with_the_smaller_bottleneck_wins() -> None:
    assert rank(1.5, 9.0) < rank(1.6, 2.0)


def test_ties_go_to_the_other_cost() -> None:
    assert rank(0.4, 2.0) < rank(0.5, 2.0)
    assert rank(1.5, 2.0) < rank(1.5, 2.1)


def test_without_the_check_only_utilisation_counts() -> None:
    without = float("inf")
    assert rank(3.0, 1.9, without) < rank(0.5, 2.0, without)


def test_rounding_makes_nothing_infeasible() -> None:
    """A tenth ten times is not one, and a sum of such may be the next number above it."""
    for c_b in (1 + 2e-16, sum([0.1] * 10), 1 + 1e-10):
        assert rank(c_b, 1.6) < rank(0.9, 1.7) and Split((), (), c_b, 1.6).feasible
    assert rank(0.9, 1.7) < rank(1 + 1e-8, 1.6) and not Split((), (), 1 + 1e-8, 1.6).feasible
    assert Options().limit == FEASIBLE and Options(feasibility=False).limit == float("inf")
