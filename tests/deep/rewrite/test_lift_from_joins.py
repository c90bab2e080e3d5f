"""lift_from_joins: rows joined with one table are the same text, whatever is kept and how it is called."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.plan.expr import Expr
from headrace.plan.logical import Filter, LogicalPlan, Project, TableJoin
from headrace.plan.placed import split_filter
from headrace.plan.text import format_plan
from headrace.rewrite.driver import rewrite
from headrace.rewrite.lift_from_joins import lift_from_joins
from headrace.rewrite.merge_projections import merge_projections
from headrace.rewrite.normalise_windows import normalise_windows
from headrace.rewrite.push_filters import push_filters
from tests.unit.plan.building import PLUGS, READINGS, call, col, lit, project
from tests.unit.rewrite.answers import same_answer
from tests.unit.rewrite.random_plans import plans

K, V = col(READINGS, "k"), col(READINGS, "v")
PK, WATTS = col(PLUGS, "pk"), col(PLUGS, "watts")
HOT = call(">", V, lit(1.0))
STRONG = call(">", WATTS, lit(2.0))
ON: tuple[tuple[Expr, Expr], ...] = ((K, PK),)


def joined(plan: LogicalPlan) -> LogicalPlan:
    """What is left below the projection and the filters, with the check that nothing else changed."""
    after = lift_from_joins(plan)
    assert lift_from_joins(after) == after
    assert after.schema == plan.schema
    assert all(same_answer(plan, after, seed) for seed in range(3))
    return split_filter(after.input if isinstance(after, Project) else after)[0]


ALL = joined(TableJoin(READINGS, PLUGS, ON))


def test_a_condition_on_the_stream_goes_up() -> None:
    assert joined(TableJoin(Filter(READINGS, HOT), PLUGS, ON)) == ALL
    assert joined(TableJoin(Filter(READINGS, HOT), PLUGS, ON, outer=True)) == joined(
        TableJoin(READINGS, PLUGS, ON, outer=True)
    )


def test_a_condition_on_the_table_goes_up_through_inner_joins_only() -> None:
    strong = Filter(PLUGS, STRONG)
    assert joined(TableJoin(READINGS, strong, ON)) == ALL
    outer = joined(TableJoin(READINGS, strong, ON, outer=True))
    assert outer != joined(TableJoin(READINGS, PLUGS, ON, outer=True))
    assert "Filter n1: watts > 2.0" in format_plan(outer)


def test_names_and_columns_left_out_do_not_matter() -> None:
    mine, theirs = project(READINGS, "ts", a="k"), project(PLUGS, "watts", b="pk")
    assert joined(TableJoin(mine, theirs, ((col(mine, "a"), col(theirs, "b")),))) == ALL


def test_what_an_outer_join_computes_of_the_table_stays_below() -> None:
    """coalesce(watts, 0.0) is 0.0 for a plug without watts, and NULL for a reading without a plug."""
    some = Project(PLUGS, (("pk", PK), ("w", call("coalesce", WATTS, lit(0.0)))))
    plan = TableJoin(READINGS, some, ((K, col(some, "pk")),), outer=True)
    assert lift_from_joins(plan) == plan
    above = Project(TableJoin(READINGS, PLUGS, ON, outer=True), (("w", call("coalesce", WATTS, lit(0.0))),))
    assert not same_answer(Project(plan, (("w", col(plan, "w")),)), above), "lifting would be wrong"


def test_a_table_joined_twice_is_left_alone() -> None:
    once = TableJoin(READINGS, PLUGS, ON)
    other = project(PLUGS, b="pk", c="watts")
    twice = TableJoin(once, other, ((K, col(other, "b")),))
    assert same_answer(twice, lift_from_joins(twice))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(plans(), st.integers(0, 5))
def test_random_plans_answer_the_same(plan: LogicalPlan, seed: int) -> None:
    normal = rewrite(plan, (push_filters, normalise_windows, merge_projections))
    after = rewrite(normal, (lift_from_joins, normalise_windows, merge_projections))
    assert after.schema == plan.schema
    assert same_answer(plan, after, seed)
