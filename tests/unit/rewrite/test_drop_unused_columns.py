"""drop_unused_columns: what is read, what must stay though nothing names it, and the same answers."""

from __future__ import annotations

from headrace.plan.bounds import TimeBound
from headrace.plan.logical import (
    Aggregate,
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    StreamScan,
    TableJoin,
    TableScan,
    WindowJoin,
    nodes,
)
from headrace.plan.text import format_plan
from headrace.rewrite.drop_unused_columns import drop_unused_columns
from tests.unit.plan.building import (
    PLUGS,
    READINGS,
    SECOND,
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

K, V, S = (col(READINGS, n) for n in "kvs")


def narrowed(plan: LogicalPlan) -> LogicalPlan:
    after = drop_unused_columns(plan)
    assert drop_unused_columns(after) == after
    assert after.schema == plan.schema
    assert same_answer(plan, after)
    return after


def scanned(plan: LogicalPlan) -> list[tuple[str, ...]]:
    """The columns of each scan, left to right."""
    return [n.columns.names for n in nodes(narrowed(plan)) if isinstance(n, StreamScan | TableScan)]


def test_a_scan_reads_what_is_named_and_always_its_event_time() -> None:
    assert scanned(project(READINGS, "v")) == [("ts", "v")]
    assert scanned(project(Filter(READINGS, call("=", S, lit("load"))), "v")) == [("ts", "v", "s")]
    assert scanned(Project(READINGS, (("one", lit(1)),))) == [("ts",)]


def test_the_columns_of_the_plan_itself_are_never_dropped() -> None:
    for plan in (READINGS, interval_join(), window(READINGS)):
        assert narrowed(plan) == plan


def test_an_aggregate_keeps_its_keys_and_drops_calls_nobody_reads() -> None:
    windowed = window(READINGS)
    totals = Aggregate(
        windowed,
        columns(windowed, "k", "s"),
        (("total", agg("sum", col(windowed, "v"))), ("n", agg("count", col(windowed, "ts")))),
    )
    by_s = Aggregate(totals, columns(totals, "s"), (("most", agg("max", col(totals, "n"))),))
    assert format_plan(narrowed(by_s)).splitlines() == [
        "n0 := Stream readings [ts timestamp, k int, s string] time ts, watermark 5s",
        "n1 := Window n0: range 60s, slide 60s on ts",
        "n2 := Aggregate n1: by (k, s) give (count(ts) AS n)",
        "n3 := Aggregate n2: by (s) give (max(n) AS most)",
    ]


def test_the_last_call_of_an_aggregate_stays() -> None:
    windowed = window(READINGS)
    counts = Aggregate(windowed, columns(windowed, "k"), (("n", agg("count")), ("m", agg("max", V))))
    after = narrowed(project(counts, "window_end"))
    assert "give (count(*) AS n)" in format_plan(after)


def test_the_ends_of_the_window_stay_for_the_aggregate_above_a_projection() -> None:
    inner = project(window(READINGS), "k", "v", "s", a="window_start", b="window_end")
    plan = Aggregate(inner, (), (("top", agg("max", col(inner, "v"))),))
    assert "Project n1: v, window_start AS a, window_end AS b" in format_plan(narrowed(plan))


def test_the_ends_of_both_windows_stay_for_a_window_join() -> None:
    left = project(window(READINGS), "window_start", "window_end", "k", "v", "s")
    right = project(window(SWITCHES, time="ts2"), "k2", "on2", a="window_start", b="window_end")
    plan = project(WindowJoin(left, right, ((col(left, "k"), col(right, "k2")),)), "v")
    lines = format_plan(narrowed(plan)).splitlines()
    assert lines[2] == "n2 := Project n1: window_start, window_end, k, v"
    assert lines[5] == "n5 := Project n4: k2, window_start AS a, window_end AS b"


def test_event_times_that_bound_a_join_stay() -> None:
    left = project(READINGS, "k", "s", "v", at="ts")
    bounds = (TimeBound("at", "ts2", SECOND), TimeBound("ts2", "at", 20 * SECOND))
    plan = project(IntervalJoin(left, SWITCHES, ((col(left, "k"), col(SWITCHES, "k2")),), bounds), "v")
    lines = format_plan(narrowed(plan)).splitlines()
    assert lines[1] == "n1 := Project n0: k, v, ts AS at"
    assert lines[2] == "n2 := Stream switches [ts2 timestamp, k2 int] time ts2, watermark 3s"


def test_a_table_join_reads_its_keys_and_conditions_on_both_sides() -> None:
    condition = call("<", V, col(PLUGS, "watts"))
    plan = project(TableJoin(READINGS, PLUGS, ((K, col(PLUGS, "pk")),), condition, outer=True), "ts")
    assert scanned(plan) == [("ts", "k", "v"), ("pk", "watts")]


def test_a_table_nobody_reads_keeps_a_column_because_it_still_multiplies_rows() -> None:
    assert scanned(project(TableJoin(READINGS, PLUGS, ()), "v")) == [("ts", "v"), ("pk",)]


def test_a_projection_nobody_reads_keeps_a_column() -> None:
    inner = Project(PLUGS, (("a", col(PLUGS, "name")), ("b", col(PLUGS, "watts"))))
    after = narrowed(project(TableJoin(READINGS, inner, ()), "v"))
    assert "Project n1: name AS a" in format_plan(after)


def test_a_stream_read_twice_is_read_with_the_same_columns_so_that_it_is_still_one() -> None:
    windowed = window(READINGS)
    top = Aggregate(windowed, (), (("top", agg("max", col(windowed, "v"))),))
    right = project(top, "top", a="window_start", b="window_end")
    joined = WindowJoin(windowed, right, (), call("=", col(windowed, "v"), col(right, "top")))
    assert format_plan(narrowed(project(joined, "k"))).splitlines()[:4] == [
        "n0 := Stream readings [ts timestamp, k int, v double] time ts, watermark 5s",
        "n1 := Window n0: range 60s, slide 60s on ts",
        "n2 := Aggregate n1: by () give (max(v) AS top)",
        "n3 := Project n2: top, window_start AS a, window_end AS b",
    ]
