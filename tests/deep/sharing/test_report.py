"""What a plan reports: from its assignment alone, exact, and refused when it is no plan."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import pairwise

import pytest

from headrace.errors import InternalError
from headrace.planners.sharing.brute_force import plan_costs
from headrace.planners.sharing.instance import instance_of
from headrace.planners.sharing.problem import Assignment, FrontPoint, Options
from headrace.planners.sharing.report import quick_costs, report
from headrace.planners.sharing.solve import front_fast, plan_fast, solve
from tests.deep.sharing.clock import counting
from tests.deep.sharing.test_optimisers import of

EXAMPLE = of([(6, 2), (8, 4), (7, 3)], 10.0, (1.0, 2.0))
"""The paper's Example 1, and a query with an edge that closes."""
WOVEN: Assignment = (((0, 1),), ((2,),))


def test_the_papers_example_by_hand() -> None:
    plan = report(EXAMPLE, "by hand", WOVEN, seconds=0.5, compiled=1.5)
    one, two = plan.nodes[0].trees[0], plan.nodes[1].trees[0]
    assert (one.queries, one.edge_rate, one.overlap, one.cost) == (
        ("q0", "q1"),
        Fraction(1, 2),
        Fraction(5),
        12.5,
    )
    assert (two.edge_rate, two.overlap) == (Fraction(2, 3), Fraction(7, 3))
    assert one.exact
    assert two.exact
    assert plan.total_cost == pytest.approx(22.5 + 14 / 9)
    assert plan.max_cost == 12.5
    assert plan.max_load == 12.5
    assert plan.unshared_cost == pytest.approx(30 + 3 / 2 + 2 / 4 + 14 / 9)
    assert (plan.seconds, plan.compile_seconds, plan.optimiser) == (0.5, 1.5, "by hand")


def test_the_true_cost_differs_only_where_a_range_is_no_multiple() -> None:
    """(7, 3) alone: every window holds 2 whole slides of 2 fragments and a head of 1, so 5 a slide of 3."""
    true = of([(6, 2), (8, 4), (7, 3)], 10.0, (1.0, 2.0), "true")
    plan = report(true, "by hand", WOVEN, seconds=0, compiled=0)
    assert plan.nodes[0].cost == 12.5
    assert plan.nodes[1].cost == pytest.approx(10 + 5 / 3)
    assert plan.unshared_cost == pytest.approx(30 + 3 / 2 + 2 / 4 + 5 / 3)


NOT_PLANS: dict[str, Assignment] = {
    "a query is missing": (((0, 1),), ()),
    "a query is there twice": (((0, 1),), ((1, 2),)),
    "a query that does not exist": (((0, 1),), ((2, 3),)),
    "a node is missing": (((0, 1, 2),),),
    "a node too many": (((0, 1),), ((2,),), ()),
    "an empty tree": (((0, 1), ()), ((2,),)),
}


@pytest.mark.parametrize("what", NOT_PLANS)
def test_no_plan_is_a_bug_of_ours(what: str) -> None:
    with pytest.raises(InternalError):
        report(EXAMPLE, "by hand", NOT_PLANS[what], seconds=0, compiled=0)


def test_unshared_queries_with_the_same_window_all_count() -> None:
    many = of([(6, 2)] * 5, 10.0, (1.0,))
    plan = report(many, "by hand", (((0, 1, 2, 3, 4),),), seconds=0, compiled=0)
    assert plan.unshared_cost == 5 * 11.5
    assert plan.total_cost == 10 + 0.5 * 15


def test_quick_costs_are_the_papers() -> None:
    total, load = quick_costs(instance_of(EXAMPLE), WOVEN)
    exact, nodes = plan_costs(EXAMPLE, WOVEN)
    assert (total, load) == pytest.approx((exact, max(nodes[0], nodes[1] / 2)))


def test_points_of_a_front_are_computed_again() -> None:
    """What a search believed is not passed on."""
    believed = FrontPoint(1.0, 1.0, WOVEN)
    plan = report(EXAMPLE, "by hand", WOVEN, seconds=0, compiled=0, front=(believed,))
    assert plan.front[0].total_cost == pytest.approx(plan.total_cost)
    assert plan.front[0].assignment == WOVEN


@pytest.mark.parametrize("capacities", [(1.0, 1.0, 1.0), (1.0, 4.0, 0.5)])
@pytest.mark.parametrize("cost", ["paper", "true"])
def test_a_reported_front_is_a_front(capacities: tuple[float, ...], cost: str) -> None:
    windows = [(s * k + k % s, s) for s in (2, 3, 4, 5, 6, 8, 9, 10) for k in (1, 2, 5, 7)]
    made = of(windows, 6.0, capacities, "paper" if cost == "paper" else "true")
    plan = solve(made, "headrace", Options(seconds=0.05), clock=time.process_time, front=True)
    assert len(plan.front) > 1
    for one, next_one in pairwise(plan.front):
        assert one.total_cost < next_one.total_cost
        assert one.max_load > next_one.max_load
    for point in plan.front:
        _, nodes = plan_costs(made, point.assignment)
        loads = [cost / capacity for cost, capacity in zip(nodes, capacities, strict=True)]
        assert (point.max_cost, point.max_load) == pytest.approx((max(nodes), max(loads)), rel=1e-12)


def test_a_front_without_a_time_of_its_own_gets_more_than_a_plan() -> None:
    made = of([(s * k, s) for s in (2, 3, 4, 5, 6, 8, 9, 10) for k in (1, 2, 5, 7)], 6.0, (1.0,) * 3)
    one = plan_fast(made, "headrace", Options(), clock=counting()).seconds
    assert front_fast(made, Options(), clock=counting()).seconds > 5 * one
    assert front_fast(made, Options(seconds=one), clock=counting()).seconds < 2 * one
