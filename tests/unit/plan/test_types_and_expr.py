"""Schemas and expressions: what they refuse, what they derive."""

from __future__ import annotations

import pytest

from headrace.errors import InternalError
from headrace.plan.expr import (
    TRUE,
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expr,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
    walk,
)
from headrace.plan.functions import AGGREGATES, MERGEABLE, SCALARS, unify
from headrace.plan.types import Column, DataType, Schema, common_number
from tests.unit.plan.building import T, call, lit

A = ColumnRef("a", T.INT)
B = ColumnRef("b", T.INT)
D = ColumnRef("d", T.DOUBLE)
S = ColumnRef("s", T.STRING)
TS = ColumnRef("ts", T.TIMESTAMP)
P = ColumnRef("p", T.BOOLEAN)
SPAN = Literal(5, T.INTERVAL)


def test_a_schema_refuses_the_same_name_twice() -> None:
    with pytest.raises(InternalError, match="twice: a"):
        Schema([Column("a", T.INT), Column("b", T.INT), Column("a", T.STRING)])


def test_schemas_compare_names_types_and_order() -> None:
    ab, ba = (
        Schema([Column("a", T.INT), Column("b", T.INT)]),
        Schema([Column("b", T.INT), Column("a", T.INT)]),
    )
    assert ab == Schema(ab.columns)
    assert hash(ab) == hash(Schema(ab.columns))
    assert ab != ba
    assert ab != Schema([Column("a", T.BIGINT), Column("b", T.INT)])
    assert (ab.names, len(ab), "a" in ab, "z" in ab) == (("a", "b"), 2, True, False)


@pytest.mark.parametrize(
    ("left", "right", "meet"),
    [
        (T.INT, T.INT, T.BIGINT),
        (T.INT, T.BIGINT, T.BIGINT),
        (T.FLOAT, T.FLOAT, T.DOUBLE),
        (T.BIGINT, T.FLOAT, T.DOUBLE),
    ],
)
def test_numbers_meet_where_nothing_wraps(left: DataType, right: DataType, meet: DataType) -> None:
    assert common_number(left, right) is meet
    assert common_number(right, left) is meet


def test_unify_keeps_one_type_and_widens_numbers_only() -> None:
    assert unify((T.INT, T.INT)) is T.INT
    assert unify((T.INT, T.DOUBLE, T.INT)) is T.DOUBLE
    assert unify((T.STRING, T.INT)) is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1, T.BOOLEAN), (True, T.INT), (1, T.DOUBLE), (1.0, T.INT), ("x", T.TIMESTAMP), (1, T.STRING)],
)
def test_a_literal_of_another_type_is_refused(value: bool | int | float | str, kind: DataType) -> None:
    with pytest.raises(InternalError, match="is not a"):
        Literal(value, kind)


def test_null_has_any_type() -> None:
    assert all(Literal(None, kind).type is kind for kind in DataType)


GOOD: list[tuple[Expr, DataType]] = [
    (call("+", A, B), T.BIGINT),
    (call("+", A, D), T.DOUBLE),
    (call("/", A, B), T.DOUBLE),
    (call("%", A, B), T.BIGINT),
    (call("+", TS, SPAN), T.TIMESTAMP),
    (call("+", SPAN, TS), T.TIMESTAMP),
    (call("-", TS, SPAN), T.TIMESTAMP),
    (call("<", A, D), T.BOOLEAN),
    (call("=", S, S), T.BOOLEAN),
    (call("and", P, P, P), T.BOOLEAN),
    (call("in", A, lit(1), lit(2.0)), T.BOOLEAN),
    (call("negate", A), T.BIGINT),
    (call("abs", D), T.DOUBLE),
    (call("floor", D), T.BIGINT),
    (call("round", D, lit(2)), T.DOUBLE),
    (call("coalesce", A, D), T.DOUBLE),
    (call("nullif", A, D), T.INT),
    (call("concat", S, S), T.STRING),
    (call("substring", S, lit(1)), T.STRING),
    (call("length", S), T.INT),
    (call("date_trunc", lit("hour"), TS), T.TIMESTAMP),
    (call("hour", TS), T.INT),
    (call("unix_micros", TS), T.BIGINT),
    (Cast(A, T.STRING), T.STRING),
    (Case(((P, A),), D), T.DOUBLE),
    (Case(((P, S),), None), T.STRING),
]


@pytest.mark.parametrize(("expr", "kind"), GOOD)
def test_an_expression_knows_its_type(expr: Expr, kind: DataType) -> None:
    assert expr.type is kind


BAD: list[tuple[str, tuple[Expr, ...]]] = [
    ("+", (A,)),
    ("+", (TS, TS)),
    ("+", (S, S)),
    ("-", (SPAN, TS)),
    ("*", (SPAN, A)),
    ("<", (A, S)),
    ("<", (A, B, D)),
    ("and", ()),
    ("and", (P, A)),
    ("not", (P, P)),
    ("in", (A,)),
    ("in", (A, S)),
    ("like", (S, A)),
    ("abs", (S,)),
    ("round", (D, D)),
    ("coalesce", ()),
    ("coalesce", (A, S)),
    ("concat", (S,)),
    ("date_trunc", (TS, S)),
    ("hour", (S,)),
    ("no_such_function", (A,)),
]


@pytest.mark.parametrize(("function", "args"), BAD)
def test_a_call_that_does_not_fit_cannot_exist(function: str, args: tuple[Expr, ...]) -> None:
    with pytest.raises(InternalError, match="does not type-check"):
        Call(function, args)


def test_casts_without_one_meaning_cannot_exist() -> None:
    for arg, kind in [(D, T.STRING), (S, T.INT), (TS, T.STRING), (A, T.BOOLEAN), (A, T.TIMESTAMP)]:
        with pytest.raises(InternalError, match="no cast"):
            Cast(arg, kind)


def test_case_refuses_mixed_values_and_conditions_that_are_none() -> None:
    wrong: list[tuple[tuple[tuple[Expr, Expr], ...], Expr | None]] = [
        ((), A),
        (((A, A),), None),
        (((P, A),), S),
        (((P, A), (P, S)), None),
    ]
    for branches, otherwise in wrong:
        with pytest.raises(InternalError, match="CASE"):
            Case(branches, otherwise)


@pytest.mark.parametrize(
    ("function", "arg", "kind"),
    [
        ("count", None, T.BIGINT),
        ("count", S, T.BIGINT),
        ("sum", A, T.BIGINT),
        ("sum", D, T.DOUBLE),
        ("avg", A, T.DOUBLE),
        ("min", S, T.STRING),
        ("max", TS, T.TIMESTAMP),
        ("stddev_samp", A, T.DOUBLE),
        ("approx_count_distinct", S, T.BIGINT),
    ],
)
def test_aggregates_know_their_type(function: str, arg: Expr | None, kind: DataType) -> None:
    assert AggregateCall(function, arg).type is kind


@pytest.mark.parametrize(
    ("function", "arg"), [("sum", None), ("sum", S), ("avg", TS), ("min", SPAN), ("first", A)]
)
def test_aggregates_that_do_not_fit_cannot_exist(function: str, arg: Expr | None) -> None:
    with pytest.raises(InternalError, match="does not type-check"):
        AggregateCall(function, arg)


def test_only_the_median_cannot_be_merged_from_parts() -> None:
    assert set(AGGREGATES) - MERGEABLE == {"median"}
    assert all(name == function.name for name, function in SCALARS.items())


def test_walk_and_columns_reach_every_corner() -> None:
    expr = Case(((call(">", A, lit(1)), Cast(B, T.DOUBLE)),), call("abs", D))
    assert columns_of(expr) == {"a", "b", "d"}
    assert sum(1 for _ in walk(expr)) == 8


def test_substitute_replaces_once_and_everywhere() -> None:
    swapped = substitute(call("+", A, call("*", B, A)), {"a": B, "b": A})
    assert swapped == call("+", B, call("*", A, B))
    inside = Case(((P, Cast(A, T.DOUBLE)),), D)
    assert columns_of(substitute(inside, {"a": B, "p": call("=", S, S)})) == {"b", "s", "d"}


def test_conjuncts_flatten_and_conjunction_puts_together() -> None:
    q, r = call("<", A, B), call("=", S, S)
    nested = call("and", call("and", P, q), call("and", r, TRUE))
    assert conjuncts(nested) == (P, q, r)
    assert conjunction(conjuncts(nested)) == call("and", P, q, r)
    assert conjuncts(TRUE) == ()
    assert conjunction(()) == TRUE
    assert conjunction((q,)) == q
    assert conjuncts(call("or", P, q)) == (call("or", P, q),)
