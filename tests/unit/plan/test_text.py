"""The text of plans and expressions, written out by hand."""

from __future__ import annotations

import pytest

from headrace.plan.expr import Case, Cast, ColumnRef, Expr, Literal
from headrace.plan.logical import Aggregate, Filter, TableJoin, WindowJoin
from headrace.plan.text import format_expr, format_plan, plan_lines
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
)

A, B, C = (ColumnRef(n, T.INT) for n in "abc")
P, Q, R = (ColumnRef(n, T.BOOLEAN) for n in "pqr")
S = ColumnRef("s", T.STRING)

TEXTS: list[tuple[Expr, str]] = [
    (call("-", A, call("-", B, C)), "a - (b - c)"),
    (call("-", call("-", A, B), C), "a - b - c"),
    (call("*", call("+", A, B), C), "(a + b) * c"),
    (call("+", call("*", A, B), C), "a * b + c"),
    (call("and", P, call("or", Q, R)), "p AND (q OR r)"),
    (call("or", call("and", P, Q), R), "p AND q OR r"),
    (call("and", P, call("and", Q, R)), "p AND (q AND r)"),
    (call("not", call("and", P, Q)), "NOT (p AND q)"),
    (call("=", call("=", A, B), P), "a = b = p"),
    (call("=", P, call("=", A, B)), "p = (a = b)"),
    (call("negate", call("+", A, B)), "-(a + b)"),
    (call("is_null", call("+", A, B)), "a + b IS NULL"),
    (call("is_not_null", call("=", A, B)), "(a = b) IS NOT NULL"),
    (call("in", A, lit(1), lit(2)), "a IN (1, 2)"),
    (call("like", S, lit("o'n%")), "s LIKE 'o''n%'"),
    (call("coalesce", A, lit(0)), "coalesce(a, 0)"),
    (Cast(A, T.DOUBLE), "CAST(a AS DOUBLE)"),
    (Case(((P, A), (Q, B)), C), "CASE WHEN p THEN a WHEN q THEN b ELSE c END"),
    (Case(((P, A),), None), "CASE WHEN p THEN a END"),
    (Literal(None, T.INT), "NULL"),
    (lit(1.5), "1.5"),
    (Literal(0, T.TIMESTAMP), "TIMESTAMP '1970-01-01 00:00:00'"),
    (Literal(19_000, T.DATE), "DATE '2022-01-08'"),
    (Literal(1_500_000, T.INTERVAL), "INTERVAL '1500ms'"),
]


@pytest.mark.parametrize(("expr", "text"), TEXTS, ids=[t for _, t in TEXTS])
def test_expressions(expr: Expr, text: str) -> None:
    assert format_expr(expr) == text


def test_a_plan_is_one_line_a_node_inputs_first() -> None:
    windowed = window(Filter(READINGS, call("=", col(READINGS, "s"), lit("load"))), SLIDING)
    calls = (("n", agg("count")), ("top", agg("max", col(windowed, "v"))))
    plan = project(Aggregate(windowed, columns(windowed, "k"), calls), "k", "n", at="window_end")
    assert format_plan(plan).splitlines() == [
        "n0 := Stream readings [ts timestamp, k int, v double, s string] time ts, watermark 5s",
        "n1 := Filter n0: s = 'load'",
        "n2 := Window n1: range 60s, slide 10s on ts",
        "n3 := Aggregate n2: by (k) give (count(*) AS n, max(v) AS top)",
        "n4 := Project n3: k, n, window_end AS at",
    ]


def test_joins_say_their_keys_bounds_and_conditions() -> None:
    joined = interval_join()
    on = ((col(joined, "k"), col(PLUGS, "pk")),)
    plan = TableJoin(joined, PLUGS, on, call("<", col(joined, "v"), col(PLUGS, "watts")), outer=True)
    lines = format_plan(plan).splitlines()
    assert lines[2] == "n2 := IntervalJoin n0 n1: on k = k2 within ts2 - ts <= 10s; ts - ts2 <= 10s"
    assert lines[4] == "n4 := TableJoin n2 n3: outer on k = pk AND v < watts"
    assert lines[3] == "n3 := Table plugs [pk int, name string, watts double]"


def test_a_sub_plan_read_twice_is_written_once() -> None:
    windowed = window(SWITCHES, time="ts2")
    right = project(windowed, a="window_start", b="window_end", c="k2")
    plan = WindowJoin(windowed, right, ())
    assert [(line.id, line.inputs) for line in plan_lines(plan)] == [
        ("n0", ()),
        ("n1", ("n0",)),
        ("n2", ("n1",)),
        ("n3", ("n1", "n2")),
    ]
    assert str(plan_lines(plan)[-1]) == "n3 := WindowJoin n1 n2: on TRUE"
