"""Hand-computed values of expressions in DuckDB, and the traps of Spark's text. Spark itself: tests/spark."""

from __future__ import annotations

import math
from datetime import date, datetime

import duckdb
import pytest

from headrace.errors import NotSupported
from headrace.plan.expr import AggregateCall, Call, Case, Cast, ColumnRef, Expr, Literal, Value
from headrace.plan.functions import AGGREGATES, SCALARS
from headrace.plan.types import DataType
from headrace.runtime.sqltext import DuckWriter, ExprWriter, SparkWriter
from tests.unit.runtime.expression_cases import aggregates, scalars

T = DataType
TOP = 2**63 - 1
DUCK = duckdb.connect()


def i(value: int | None) -> Literal:
    return Literal(value, T.INT)


def big(value: int | None) -> Literal:
    return Literal(value, T.BIGINT)


def d(value: float | None) -> Literal:
    return Literal(value, T.DOUBLE)


def s(value: str | None) -> Literal:
    return Literal(value, T.STRING)


def ts(text: str) -> Literal:
    micros = (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds() * 1_000_000
    return Literal(round(micros), T.TIMESTAMP)


def second(count: float) -> Literal:
    return Literal(round(count * 1_000_000), T.INTERVAL)


def call(function: str, *args: Expr) -> Call:
    return Call(function, args)


def value_of(expr: Expr) -> object:
    found = DUCK.execute(f"SELECT {DuckWriter().expr(expr)}").fetchone()
    assert found is not None
    return found[0]


MEANINGS: list[tuple[Expr, object]] = [
    (call("+", i(2**31 - 1), i(1)), 2**31),
    (call("+", big(TOP), i(1)), None),
    (call("*", big(TOP), big(-2)), None),
    (call("-", i(2), d(0.5)), 1.5),
    (call("/", i(7), i(2)), 3.5),
    (call("/", i(7), i(0)), None),
    (call("/", d(1.0), d(-0.0)), None),
    (call("%", i(-7), i(3)), -1),
    (call("%", d(-5.5), d(2.0)), -1.5),
    (call("%", i(5), i(0)), None),
    (call("%", big(-TOP - 1), i(-1)), 0),
    (call("negate", big(-TOP - 1)), None),
    (call("abs", big(-TOP - 1)), None),
    (call("sqrt", i(-1)), None),
    (call("ln", i(0)), None),
    (call("log10", i(1000)), 3.0),
    (call("power", d(1.0), d(math.inf)), "nan"),
    (call("power", d(2.0), i(10)), 1024.0),
    (call("round", d(2.5)), 3.0),
    (call("round", d(-2.5)), -3.0),
    (call("round", d(0.49999999999999994)), 0.0),
    (call("round", d(-1.4999999999999998)), -1.0),
    (call("round", d(4503599627370495.5)), 4503599627370496.0),
    (call("round", d(0.125), i(2)), 0.13),
    (call("round", d(-1234.5), i(-2)), -1200.0),
    (call("round", d(2.0**52 + 1)), 2.0**52 + 1),
    (call("round", d(math.inf), i(2)), math.inf),
    (call("round", d(1.25), i(400)), 1.25),
    (call("round", d(1.25), i(-400)), 0.0),
    (call("floor", d(-1.5)), -2),
    (call("ceil", d(-1.5)), -1),
    (call("floor", d(2.0**63)), None),
    (call("floor", d(-(2.0**63))), -(2**63)),
    (call("ceil", d(math.nan)), None),
    (call("floor", big(7)), 7),
    (Cast(d(-2.9), T.INT), -2),
    (Cast(d(2.5), T.BIGINT), 2),
    (Cast(d(math.nan), T.INT), None),
    (Cast(d(2147483648.0), T.INT), None),
    (Cast(d(2147483647.9), T.INT), 2147483647),
    (Cast(big(2**31), T.INT), None),
    (Cast(d(1e300), T.FLOAT), None),
    (Cast(i(-5), T.STRING), "-5"),
    (Cast(Literal(True, T.BOOLEAN), T.BIGINT), 1),
    (Cast(ts("1969-12-31T23:59:59.5"), T.DATE), date(1969, 12, 31)),
    (Cast(Literal(-1, T.DATE), T.TIMESTAMP), datetime(1969, 12, 31)),
    (call("=", d(math.nan), d(math.nan)), True),
    (call(">", d(math.nan), d(math.inf)), True),
    (call("<", i(1), d(1.5)), True),
    (call("in", i(1), i(2), i(None)), None),
    (call("in", i(1), d(1.0), i(None)), True),
    (call("and", Literal(None, T.BOOLEAN), Literal(False, T.BOOLEAN)), False),
    (call("or", Literal(None, T.BOOLEAN), Literal(False, T.BOOLEAN)), None),
    (call("greatest", i(None), i(3), d(3.5)), 3.5),
    (call("least", i(None), i(3)), 3),
    (call("concat", s("a"), s(None)), None),
    (call("trim", s(" \ta ")), "\ta"),
    (call("length", s("🤦é")), 2),
    (call("substring", s("abcdef"), i(2), i(3)), "bcd"),
    (call("substring", s("abcdef"), i(0), i(3)), "ab"),
    (call("substring", s("abcdef"), i(-1), i(3)), "a"),
    (call("substring", s("abcdef"), i(5)), "ef"),
    (call("substring", s("abcdef"), i(2), i(-1)), ""),
    (call("substring", s("abcdef"), call("abs", i(-2)), call("abs", i(2))), "bc"),
    (call("substring", s("abcdef"), i(2), i(None)), None),
    (call("like", s("a\\b"), s("a\\_")), True),
    (call("like", s("a_"), s("a\\_")), False),
    (call("like", s("x\ny"), s("x_y")), True),
    (call("nullif", i(2), d(2.0)), None),
    (call("nullif", s("a"), s("b")), "a"),
    (call("+", ts("2024-02-28T23:59:59.999999"), second(0.000001)), datetime(2024, 2, 29)),
    (call("-", ts("1970-01-01"), second(86400)), datetime(1969, 12, 31)),
    (call("date_trunc", s("minute"), ts("1960-02-29T23:59:59.5")), datetime(1960, 2, 29, 23, 59)),
    (call("second", ts("1960-02-29T23:59:59.5")), 59),
    (call("unix_seconds", ts("1969-12-31T23:59:59.5")), -1),
    (call("unix_micros", ts("1969-12-31T23:59:59.5")), -500_000),
    (Case(((Literal(False, T.BOOLEAN), i(1)),), None), None),
    (Case(((Literal(True, T.BOOLEAN), i(1)),), d(2.5)), 1.0),
]


@pytest.mark.parametrize(("expr", "wanted"), MEANINGS, ids=[str(k) for k in range(len(MEANINGS))])
def test_duckdb_gives_our_meaning(expr: Expr, wanted: object) -> None:
    found = value_of(expr)
    if wanted == "nan":
        assert isinstance(found, float) and math.isnan(found)
    else:
        assert (type(found), found) == (type(wanted), wanted)


def test_the_differential_table_covers_every_function() -> None:
    """tests/spark compares the engines over this table: a function that is not in it is not checked."""
    assert {e.function for e in scalars() if isinstance(e, Call)} == set(SCALARS)
    assert {c.function for c in aggregates()} == set(AGGREGATES)


AWKWARD = ["", "it's", 'say "x"', "a\\b", "\\", "line\nbreak", "\ttab", "${x}", "日本🤦", "nul\0x", "`", "--"]


@pytest.mark.parametrize("text", AWKWARD)
def test_string_literals_are_the_string(text: str) -> None:
    assert value_of(s(text)) == text


def unescaped(text: str) -> str:
    """What Spark's documentation says a quoted string with backslash escapes means."""
    known = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'"}
    body, result = text[1:-1], ""
    while body:
        if body[0] != "\\":
            assert body[0] != "'"
            result, body = result + body[0], body[1:]
        elif body[1] == "u":
            result, body = result + chr(int(body[2:6], 16)), body[6:]
        else:
            result, body = result + known[body[1]], body[2:]
    return result


@pytest.mark.parametrize("text", AWKWARD)
def test_spark_string_literals_are_escaped(text: str) -> None:
    written = SparkWriter().literal(s(text))
    assert unescaped(written) == text
    assert "${" not in written


@pytest.mark.parametrize("value", [0.1, -0.0, 1e300, 5e-324, 1.0, 1e22, -2.5, math.inf, -math.inf])
def test_doubles_are_doubles(value: float) -> None:
    found = DUCK.execute(f"SELECT {DuckWriter().double(value)} AS x, typeof(x)").fetchone()
    assert found == (value, "DOUBLE")
    spark = SparkWriter().double(value)
    assert spark.endswith(("D", "D)")) or spark.startswith("CAST('")


@pytest.mark.parametrize(("writer", "wanted"), [(SparkWriter(), '`a.``b"`'), (DuckWriter(), '"a.`b"""')])
def test_names_are_quoted(writer: ExprWriter, wanted: str) -> None:
    assert writer.name('a.`b"') == wanted
    assert writer.expr(ColumnRef('a.`b"', T.INT)) == wanted


def aggregated(function: str, arg: Expr, values: list[Value]) -> object:
    rows = ", ".join(f"({DuckWriter().literal(Literal(v, arg.type))})" for v in values)
    text = DuckWriter().aggregate(AggregateCall(function, arg))
    found = DUCK.execute(f"SELECT {text} FROM (VALUES {rows}) AS t(x)").fetchone()
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("function", "values", "wanted"),
    [
        ("count", [1, None, 3], 2),
        ("sum", [TOP - 5, None, 5], TOP),
        ("sum", [None], None),
        ("avg", [1, 2], 1.5),
        ("min", [3, None, -1], -1),
        ("max", [3, None, -1], 3),
        ("var_samp", [1], None),
        ("var_pop", [1], 0.0),
        ("var_samp", [1, 2, 3, 4], 5 / 3),
        ("var_pop", [1, 2, 3, 4], 1.25),
        ("stddev_pop", [1, 3], 1.0),
        ("stddev_samp", [None, 7], None),
        ("median", [1, 10, 2, 4], 3.0),
        ("median", [5, None], 5.0),
        ("approx_count_distinct", [1, 1, 2, None], 2),
    ],
)
def test_aggregates_in_duckdb(function: str, values: list[Value], wanted: object) -> None:
    found = aggregated(function, ColumnRef("x", T.BIGINT), values)
    assert type(found) is type(wanted)
    assert found == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)


@pytest.mark.parametrize("writer", [SparkWriter(), DuckWriter()])
@pytest.mark.parametrize(
    "expr",
    [
        call("round", d(1.5), ColumnRef("n", T.INT)),
        call("date_trunc", ColumnRef("unit", T.STRING), ts("2024-01-01")),
        call("date_trunc", s("century"), ts("2024-01-01")),
    ],
)
def test_what_must_be_constant_is_said_to(writer: ExprWriter, expr: Expr) -> None:
    with pytest.raises(NotSupported) as refused:
        writer.expr(expr)
    assert refused.value.hint
