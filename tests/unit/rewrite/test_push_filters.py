"""push_filters: texts before and after, and the same answers on small data."""

from __future__ import annotations

import pytest

from headrace.plan.expr import TRUE, Literal
from headrace.plan.logical import Aggregate, Filter, IntervalJoin, LogicalPlan, Project, TableJoin, WindowJoin
from headrace.plan.text import format_plan
from headrace.rewrite.push_filters import push_filters
from tests.unit.plan.building import (
    PLUGS,
    READINGS,
    SLIDING,
    SWITCHES,
    T,
    agg,
    call,
    col,
    columns,
    interval_join,
    lit,
    project,
    window,
    within,
)
from tests.unit.rewrite.answers import same_answer

SCANS = {
    "readings": "Stream readings [ts timestamp, k int, v double, s string] time ts, watermark 5s",
    "switches": "Stream switches [ts2 timestamp, k2 int, on2 boolean] time ts2, watermark 3s",
    "plugs": "Table plugs [pk int, name string, watts double]",
}
K, V, S = (col(READINGS, n) for n in "kvs")
ON2, K2 = col(SWITCHES, "on2"), col(SWITCHES, "k2")
BIG = call(">", V, lit(1.0))
LOAD = call("=", S, lit("load"))
FIRST = call("<", K, lit(2))


def pushed(plan: LogicalPlan) -> list[str]:
    """The operators after the rule, scans left out; with the check that the answer did not change."""
    after = push_filters(plan)
    assert push_filters(after) == after
    assert after.schema == plan.schema
    assert same_answer(plan, after)
    lines = (line.split(" := ")[1] for line in format_plan(after).splitlines())
    return [line for line in lines if line not in SCANS.values()]


def test_filters_merge_sorted_once_and_true_goes() -> None:
    plan = Filter(Filter(Filter(READINGS, call("and", LOAD, BIG)), TRUE), call("and", BIG, FIRST))
    assert pushed(plan) == ["Filter n0: k < 2 AND s = 'load' AND v > 1.0"]
    assert pushed(Filter(READINGS, TRUE)) == []


def test_the_order_in_which_conditions_were_written_does_not_matter() -> None:
    one, other = Filter(READINGS, call("and", LOAD, BIG)), Filter(Filter(READINGS, LOAD), BIG)
    assert push_filters(one) == push_filters(other)


def test_below_a_projection_its_expressions_are_written_out() -> None:
    doubled = Project(READINGS, (("d", call("*", V, lit(2.0))), ("t", col(READINGS, "ts"))))
    plan = Filter(doubled, call(">", col(doubled, "d"), lit(4.0)))
    assert pushed(plan) == ["Filter n0: v * 2.0 > 4.0", "Project n1: v * 2.0 AS d, ts AS t"]


def test_below_a_window_but_not_when_it_is_about_the_window() -> None:
    windowed = window(READINGS, SLIDING)
    early = call("<", col(windowed, "window_end"), Literal(1_714_521_660_000_000, T.TIMESTAMP))
    assert pushed(Filter(windowed, call("and", early, LOAD))) == [
        "Filter n0: s = 'load'",
        "Window n1: range 60s, slide 10s on ts",
        "Filter n2: window_end < TIMESTAMP '2024-05-01 00:01:00'",
    ]


def counted(key: str = "k") -> Aggregate:
    windowed = window(READINGS)
    return Aggregate(windowed, columns(windowed, g=key), (("n", agg("count")),))


def test_below_an_aggregate_go_conditions_on_keys_only() -> None:
    plan = counted()
    on_key, on_count = call("=", col(plan, "g"), lit(1)), call(">", col(plan, "n"), lit(3))
    start = call(">", col(plan, "window_start"), Literal(0, T.TIMESTAMP))
    assert pushed(Filter(plan, call("and", on_count, on_key, start))) == [
        "Filter n0: k = 1",
        "Window n1: range 60s, slide 60s on ts",
        "Aggregate n2: by (k AS g) give (count(*) AS n)",
        "Filter n3: n > 3 AND window_start > TIMESTAMP '1970-01-01 00:00:00'",
    ]


def test_a_condition_on_a_fractional_key_stays_because_the_two_zeros_are_one_group() -> None:
    plan = counted("v")
    positive = call(">", call("power", col(plan, "g"), lit(-1)), lit(0))
    assert pushed(Filter(plan, positive))[-1] == "Filter n2: power(g, -1) > 0"


def test_a_constant_condition_goes_to_the_scan() -> None:
    assert pushed(Filter(counted(), lit(False)))[0] == "Filter n0: FALSE"


def test_into_the_sides_of_an_interval_join_from_above_and_from_its_condition() -> None:
    plan = IntervalJoin(READINGS, SWITCHES, ((K, K2),), within(10), call("and", BIG, ON2))
    mixed = call("or", LOAD, ON2)
    assert pushed(Filter(plan, call("and", FIRST, mixed, call(">", K2, lit(0))))) == [
        "Filter n0: k < 2 AND v > 1.0",
        "Filter n2: k2 > 0 AND on2",
        "IntervalJoin n1 n3: on k = k2 AND (s = 'load' OR on2) within ts2 - ts <= 10s; ts - ts2 <= 10s",
    ]


def test_into_both_sides_of_an_inner_table_join() -> None:
    plan = TableJoin(READINGS, PLUGS, ((K, col(PLUGS, "pk")),), call("<", col(PLUGS, "watts"), lit(9.0)))
    above = call("and", call("=", col(PLUGS, "name"), lit("a")), LOAD)
    assert pushed(Filter(plan, above)) == [
        "Filter n0: s = 'load'",
        "Filter n2: name = 'a' AND watts < 9.0",
        "TableJoin n1 n3: on k = pk",
    ]


def outer(residual: object = TRUE) -> TableJoin:
    return TableJoin(READINGS, PLUGS, ((K, col(PLUGS, "pk")),), residual, outer=True)  # type: ignore[arg-type]


def test_an_outer_join_lets_only_conditions_on_the_stream_through() -> None:
    watts = call(">", col(PLUGS, "watts"), lit(2.0))
    mixed = call(">", V, col(PLUGS, "watts"))
    assert pushed(Filter(outer(), call("and", watts, LOAD, mixed))) == [
        "Filter n0: s = 'load'",
        "TableJoin n1 n2: outer on k = pk",
        "Filter n3: v > watts AND watts > 2.0",
    ]


def test_the_condition_of_an_outer_join_itself_stays() -> None:
    for residual in (LOAD, call("=", col(PLUGS, "name"), lit("a"))):
        assert len(pushed(outer(residual))) == 1


def test_a_missing_partner_is_asked_for_above_the_outer_join() -> None:
    nobody = call("is_null", col(PLUGS, "name"))
    assert pushed(Filter(outer(), nobody))[-1] == "Filter n2: name IS NULL"


def test_into_the_sides_of_a_window_join() -> None:
    left = counted()
    right = project(counted(), g2="g", n2="n", a="window_start", b="window_end")
    plan = WindowJoin(left, right, (), call("<", col(left, "n"), col(right, "n2")))
    above = call("and", call("=", col(right, "g2"), lit(1)), call("=", col(left, "g"), lit(0)))
    assert pushed(Filter(plan, above)) == [
        "Filter n0: k = 0",
        "Window n1: range 60s, slide 60s on ts",
        "Aggregate n2: by (k AS g) give (count(*) AS n)",
        "Filter n0: k = 1",
        "Window n4: range 60s, slide 60s on ts",
        "Aggregate n5: by (k AS g) give (count(*) AS n)",
        "Project n6: g AS g2, n AS n2, window_start AS a, window_end AS b",
        "WindowJoin n3 n7: on n < n2",
    ]


def test_expressions_that_would_explode_stay_where_they_are() -> None:
    plan: LogicalPlan = Project(READINGS, (("x", V), ("ts", col(READINGS, "ts"))))
    for _ in range(30):
        x = col(plan, "x")
        plan = Project(plan, (("x", call("+", x, x)), ("ts", col(plan, "ts"))))
    after = push_filters(Filter(plan, call(">", col(plan, "x"), lit(1.0))))
    assert len(format_plan(after)) < 20_000


@pytest.mark.parametrize("function", ["avg", "max", "count"])
def test_a_naive_rule_would_be_wrong_on_having(function: str) -> None:
    windowed = window(READINGS)
    plan = Aggregate(windowed, columns(windowed, "k"), (("v", agg(function, V)),))
    assert pushed(Filter(plan, call(">", col(plan, "v"), lit(1.0))))[-1].startswith("Filter n2: v > 1.0")


def test_joined_rows_keep_both_event_times() -> None:
    assert push_filters(Filter(interval_join(), LOAD)).times == ("ts", "ts2")
