"""merge_projections: texts before and after, and the same answers."""

from __future__ import annotations

from headrace.plan.logical import Aggregate, LogicalPlan, Project
from headrace.plan.text import format_plan
from headrace.rewrite.merge_projections import merge_projections
from tests.unit.plan.building import (
    READINGS,
    SWITCHES,
    agg,
    call,
    col,
    columns,
    interval_join,
    lit,
    project,
    window,
)
from tests.unit.rewrite.answers import same_answer

V = col(READINGS, "v")


def merged(plan: LogicalPlan) -> list[str]:
    after = merge_projections(plan)
    assert merge_projections(after) == after
    assert after.schema == plan.schema
    assert same_answer(plan, after)
    return [line.split(" := ")[1] for line in format_plan(after).splitlines() if "Stream" not in line]


def test_three_projections_become_one() -> None:
    inner = Project(READINGS, (("a", call("+", V, lit(1.0))), ("t", col(READINGS, "ts"))))
    middle = Project(inner, (("b", call("*", col(inner, "a"), lit(2.0))), ("t", col(inner, "t"))))
    outer = Project(middle, (("c", call("-", col(middle, "b"), col(middle, "b"))), ("t", col(middle, "t"))))
    assert merged(outer) == ["Project n0: (v + 1.0) * 2.0 - (v + 1.0) * 2.0 AS c, ts AS t"]


def test_swapped_names_are_swapped_at_once_and_not_one_after_the_other() -> None:
    swapped = project(SWITCHES, "ts2", k2="k2", on2="on2")
    inner = Project(READINGS, (("a", V), ("b", call("negate", V)), ("ts", col(READINGS, "ts"))))
    outer = project(inner, "ts", a="b", b="a")
    assert merged(outer) == ["Project n0: ts, -v AS a, v AS b"]
    assert merged(swapped) == []


def test_a_projection_that_does_nothing_goes() -> None:
    assert merged(project(READINGS, "ts", "k", "v", "s")) == []
    assert merged(project(project(READINGS, "ts", "k", a="v", b="s"), "ts", "k", v="a", s="b")) == []


def test_another_order_or_name_or_fewer_columns_stays() -> None:
    for plan in (
        project(READINGS, "k", "ts", "v", "s"),
        project(READINGS, "ts", "k", "v", t="s"),
        project(READINGS, "ts", "k", "v"),
    ):
        assert merge_projections(plan) == plan


def test_an_aggregate_reads_through_a_projection_and_keeps_its_own_names() -> None:
    windowed = window(READINGS)
    inner = Project(
        windowed,
        (
            ("b", col(windowed, "window_end")),
            ("a", col(windowed, "window_start")),
            ("kw", call("/", col(windowed, "v"), lit(1000.0))),
            ("who", col(windowed, "k")),
        ),
    )
    calls = (("top", agg("max", col(inner, "kw"))), ("n", agg("count")))
    assert merged(Aggregate(inner, columns(inner, "who"), calls)) == [
        "Window n0: range 60s, slide 60s on ts",
        "Aggregate n1: by (k AS who) give (max(v / 1000.0) AS top, count(*) AS n)",
    ]


def test_an_aggregate_of_an_aggregate_reads_through_too() -> None:
    windowed = window(READINGS)
    totals = Aggregate(windowed, columns(windowed, "k", "s"), (("total", agg("sum", col(windowed, "v"))),))
    renamed = project(totals, "s", a="window_start", b="window_end", t="total")
    plan = Aggregate(renamed, columns(renamed, "s"), (("top", agg("max", col(renamed, "t"))),))
    assert merged(plan)[-1] == "Aggregate n2: by (s) give (max(total) AS top)"


def test_projections_inside_a_join_are_merged_too() -> None:
    left = project(project(READINGS, t="ts", kk="k"), ts="t", k="kk")
    assert merged(interval_join(left))[0] == "Project n0: ts, k"


def test_doubling_thirty_times_does_not_make_a_billion_terms() -> None:
    plan: LogicalPlan = project(READINGS, "ts", x="v")
    for _ in range(30):
        x = col(plan, "x")
        plan = Project(plan, (("ts", col(plan, "ts")), ("x", call("+", x, x))))
    after = merge_projections(plan)
    assert after.schema == plan.schema
    assert len(format_plan(after)) < 20_000
