"""normalise_windows: different ways to write one window come out as one text."""

from __future__ import annotations

from headrace.plan.expr import Literal
from headrace.plan.logical import Aggregate, LogicalPlan, Project, TableJoin
from headrace.plan.text import format_plan
from headrace.rewrite.driver import rewrite
from headrace.rewrite.normalise_windows import normalise_windows
from tests.unit.plan.building import (
    PLUGS,
    READINGS,
    SLIDING,
    T,
    agg,
    call,
    col,
    columns,
    lit,
    project,
    window,
)
from tests.unit.rewrite.answers import same_answer

K, V = col(READINGS, "k"), col(READINGS, "v")
PK = col(PLUGS, "pk")


def operators(plan: LogicalPlan) -> list[str]:
    """The lines after the rule without scans; with the check that nothing else changed."""
    after = normalise_windows(plan)
    assert normalise_windows(after) == after
    assert after.schema == plan.schema
    assert same_answer(plan, after)
    lines = [line.split(" := ")[1] for line in format_plan(after).splitlines()]
    return [line for line in lines if not line.startswith(("Stream", "Table "))]


def test_a_projection_moves_above_the_window() -> None:
    inner = Project(READINGS, (("at", col(READINGS, "ts")), ("d", call("*", V, lit(2.0)))))
    assert operators(window(inner, SLIDING, "at")) == [
        "Window n0: range 60s, slide 10s on ts",
        "Project n1: window_start, window_end, ts AS at, v * 2.0 AS d",
    ]


def test_two_projections_move_above_the_window() -> None:
    inner = project(project(READINGS, "k", t="ts"), "k", u="t")
    assert [line.split()[0] for line in operators(window(inner, SLIDING, "u"))] == [
        "Window",
        "Project",
        "Project",
    ]


def test_a_hidden_column_named_like_the_window_keeps_the_projection_below() -> None:
    named = Project(READINGS, (("window_end", K), ("ts", col(READINGS, "ts"))))
    plan = window(project(named, "ts", kk="window_end"))
    assert operators(plan)[-1] == "Window n2: range 60s, slide 60s on ts"


def test_a_table_is_joined_below_the_window_inner_or_outer() -> None:
    windowed = window(READINGS, SLIDING)
    for outer in (False, True):
        plan = TableJoin(windowed, PLUGS, ((K, PK),), call("<", V, col(PLUGS, "watts")), outer=outer)
        mark = "outer " if outer else ""
        assert operators(plan) == [
            f"TableJoin n0 n1: {mark}on k = pk AND v < watts",
            "Window n2: range 60s, slide 10s on ts",
        ]


def test_a_join_that_reads_the_window_stays_above_it() -> None:
    windowed = window(READINGS)
    late = call(">", col(windowed, "window_end"), Literal(1_714_521_660_000_000, T.TIMESTAMP))
    plan = TableJoin(windowed, PLUGS, ((K, PK),), late, outer=True)
    assert operators(plan)[0].startswith("Window")
    keyed = TableJoin(windowed, PLUGS, ((call("minute", col(windowed, "window_end")), PK),))
    assert operators(keyed)[0].startswith("Window")


def test_a_projection_between_window_and_join_steps_aside() -> None:
    between = project(window(READINGS), "window_start", "window_end", kk="k", w="v")
    plan = TableJoin(
        between, PLUGS, ((col(between, "kk"), PK),), call("<", col(between, "w"), col(PLUGS, "watts"))
    )
    assert operators(plan) == [
        "TableJoin n0 n1: on k = pk AND v < watts",
        "Window n2: range 60s, slide 60s on ts",
        "Project n3: window_start, window_end, k AS kk, v AS w, pk, name, watts",
    ]


def test_a_projection_that_hides_a_name_of_the_table_stays() -> None:
    named = project(READINGS, "ts", pk="k")
    between = project(window(named), "window_start", "window_end", kk="pk")
    plan = TableJoin(between, PLUGS, ((col(between, "kk"), PK),))
    assert operators(plan)[-1] == "TableJoin n3 n4: on kk = pk"


def counted(relation: LogicalPlan, key: str) -> LogicalPlan:
    return Aggregate(relation, columns(relation, room=key), (("n", agg("count")),))


def test_three_ways_to_count_by_name_are_one_plan() -> None:
    on = ((K, PK),)
    before = counted(window(TableJoin(READINGS, PLUGS, on)), "name")
    after = counted(TableJoin(window(READINGS), PLUGS, on), "name")
    renamed = project(READINGS, "ts", kk="k")
    windowed = window(renamed)
    through = counted(TableJoin(windowed, PLUGS, ((col(windowed, "kk"), PK),)), "name")
    texts = {format_plan(rewrite(plan)) for plan in (before, after, through)}
    assert len(texts) == 1
    assert same_answer(before, through)
