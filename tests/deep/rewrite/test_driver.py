"""The driver: the fixpoint, the blame, and random plans that answer the same before and after."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import InternalError
from headrace.plan.expr import Expr
from headrace.plan.logical import Filter, LogicalPlan, Project
from headrace.plan.text import format_plan
from headrace.rewrite.driver import RULES, rewrite
from tests.unit.plan.building import READINGS, call, col, lit, project, window
from tests.unit.rewrite.answers import same_answer
from tests.unit.rewrite.random_plans import plans


def drops_a_column(plan: LogicalPlan) -> LogicalPlan:
    return project(plan, *plan.schema.names[1:])


def negates_the_last_column(plan: LogicalPlan) -> LogicalPlan:
    items: list[tuple[str, Expr]] = [(c.name, col(plan, c.name)) for c in plan.schema]
    name, value = items[-1]
    return Project(plan, (*items[:-1], (name, call("negate", value))))


def test_the_order_of_the_rules_is_the_documented_one() -> None:
    names = ["push_filters", "normalise_windows", "merge_projections", "drop_unused_columns"]
    assert [rule.__name__ for rule in RULES] == names


def test_the_rule_that_broke_a_plan_is_named() -> None:
    with pytest.raises(InternalError, match="rule drops_a_column changed the columns"):
        rewrite(READINGS, (*RULES, drops_a_column))


def test_rules_that_never_come_to_rest_are_found_out() -> None:
    with pytest.raises(InternalError, match="does not come to rest: negates_the_last_column"):
        rewrite(project(READINGS, "v"), (negates_the_last_column,))


def test_no_rules_change_nothing() -> None:
    plan = project(project(READINGS, "v", "k"), "v")
    assert rewrite(plan, ()) is plan


def test_the_rules_together_bring_a_nested_query_to_its_normal_form() -> None:
    loads = Filter(READINGS, call("=", col(READINGS, "s"), lit("load")))
    inner = project(loads, "k", at="ts", w="v")
    windowed = window(inner, time="at")
    outer = project(windowed, "window_end", "k", "w")
    plan = project(Filter(outer, call(">", col(outer, "w"), lit(1.0))), "k", "window_end")
    assert format_plan(rewrite(plan)).splitlines() == [
        "n0 := Stream readings [ts timestamp, k int, v double, s string] time ts, watermark 5s",
        "n1 := Filter n0: s = 'load' AND v > 1.0",
        "n2 := Window n1: range 60s, slide 60s on ts",
        "n3 := Project n2: k, window_end",
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.integers(0, 5))
def test_random_plans_answer_the_same_after_the_rewrite(plan: LogicalPlan, seed: int) -> None:
    after = rewrite(plan)
    assert after.schema == plan.schema
    assert rewrite(after) == after
    assert same_answer(plan, after, seed)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_random_plans_come_to_rest_and_lose_no_event_time(plan: LogicalPlan) -> None:
    after = rewrite(plan)
    assert rewrite(after) == after
    assert set(plan.times) <= set(after.times)
    assert plan.window is None or after.window == plan.window
