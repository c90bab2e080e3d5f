"""A table of awkward values and a table of expressions over it, for both engines.

`rows()` crosses NULLs, zeros of both signs, NaN, infinities, the ends of the integer types, instants before
1970, and strings with quotes, backslashes, newlines and characters beyond the basic plane.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta

import pyarrow as pa

from headrace.plan.expr import CASTS, AggregateCall, Call, Case, Cast, ColumnRef, Expr, Literal, Value
from headrace.plan.functions import TRUNC_UNITS
from headrace.plan.types import NUMBERS, DataType

T = DataType
TOP, BOTTOM = 2**63 - 1, -(2**63)
DOUBLES = [None, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 0.1, 1.005, -3.75, 2.0**53 + 2, 1e15 + 0.3]
DOUBLES += [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 2.0**63, -(2.0**63), 2.0**52 + 1]
DOUBLES += [2147483647.5, -2147483648.5, 0.49999999999999994, 3.5e38, 123.456]
BIGINTS = [None, 0, 1, -1, 5, -7, 1000, TOP, BOTTOM, 2**53 + 1, 2**31]
INTS = [None, 0, 1, -1, 3, 2**31 - 1, -(2**31)]
FLOATS = [None, 0.0, 0.1, -1.5, math.nan, math.inf, 3.4028234663852886e38, 2.0**63, 1e-45]
STRINGS = [None, "", " ", "abc", "ABC", "  padded ", "a%b", "a_b", "a\\b", "it's", 'say "x"', "line\nbreak"]
STRINGS += [
    "\ttab",
    "héllo",
    "日本語",
    "🤦x",
    "${spark.app.name}",
    "\\",
    "%",
    "back\\\\slash",
    "ünïcode",
    "nul\0x",
]
PATTERNS = [
    None,
    "",
    "%",
    "_",
    "a%",
    "%b",
    "a_b",
    "a\\b",
    "a\\_b",
    "\\",
    "%\\%",
    "___",
    "line_break",
    "🤦_",
    "it's",
]
EPOCH = datetime(1970, 1, 1)
INSTANTS = [
    None,
    EPOCH,
    EPOCH - timedelta(microseconds=1),
    EPOCH + timedelta(seconds=59, microseconds=999999),
]
INSTANTS += [datetime(1960, 2, 29, 23, 59, 59, 500000), datetime(2024, 2, 29, 12, 34, 56, 789012)]
INSTANTS += [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2024, 12, 31, 23, 0)]
DAYS = [None, date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)]
FLAGS = [None, True, False]

COLUMNS: dict[str, tuple[DataType, pa.DataType, list[object], int]] = {
    "d": (T.DOUBLE, pa.float64(), list(DOUBLES), 1),
    "e": (T.DOUBLE, pa.float64(), list(DOUBLES), len(DOUBLES)),
    "l": (T.BIGINT, pa.int64(), list(BIGINTS), 1),
    "m": (T.BIGINT, pa.int64(), list(BIGINTS), len(BIGINTS)),
    "i": (T.INT, pa.int32(), list(INTS), 1),
    "j": (T.INT, pa.int32(), list(INTS), len(INTS)),
    "f": (T.FLOAT, pa.float32(), list(FLOATS), 1),
    "s": (T.STRING, pa.string(), list(STRINGS), 1),
    "r": (T.STRING, pa.string(), list(STRINGS), len(STRINGS)),
    "p": (T.STRING, pa.string(), list(PATTERNS), len(STRINGS)),
    "b": (T.BOOLEAN, pa.bool_(), list(FLAGS), 1),
    "c": (T.BOOLEAN, pa.bool_(), list(FLAGS), len(FLAGS)),
    "t": (T.TIMESTAMP, pa.timestamp("us"), list(INSTANTS), 1),
    "u": (T.TIMESTAMP, pa.timestamp("us"), list(INSTANTS), len(INSTANTS)),
    "day": (T.DATE, pa.date32(), list(DAYS), 1),
}
"""Name -> type, Arrow type, values, and how many rows each value stays before the next one."""


def rows() -> pa.Table:
    """Every pair of values of two columns of one type occurs in some row."""
    count = len(DOUBLES) ** 2
    columns = {
        name: pa.array([values[k // stay % len(values)] for k in range(count)], arrow)
        for name, (_, arrow, values, stay) in COLUMNS.items()
    }
    return pa.table({"id": pa.array(range(count), pa.int64()), **columns})


def col(name: str) -> ColumnRef:
    return ColumnRef(name, COLUMNS[name][0])


def lit(value: Value, of: DataType) -> Literal:
    return Literal(value, of)


def call(function: str, *args: Expr) -> Call:
    return Call(function, args)


D, E, L, M, K, J, F = (col(n) for n in "delmijf")
S, R, P, B, C, U, DAY = (col(n) for n in ("s", "r", "p", "b", "c", "u", "day"))
TS = col("t")
ROUND_DIGITS = (0, 1, 2, 5, 15, 22, 300, 400, -1, -3, -400)


def _operators() -> Iterator[Expr]:
    for op in ("+", "-", "*", "/", "%", "=", "<", ">=", "<>"):
        for left, right in ((D, E), (L, M), (K, J), (K, L), (L, D), (F, F), (F, D), (F, K)):
            yield call(op, left, right)
    for op in ("=", "<>", "<", "<=", ">", ">="):
        yield from (call(op, a, b) for a, b in ((S, R), (TS, U), (B, C), (DAY, DAY)))
    yield from (call("negate", x) for x in (D, L, K, F))
    yield from (call("and", B, C), call("or", B, C), call("not", B), call("and", B, C, lit(True, T.BOOLEAN)))
    yield from (call("is_null", x) for x in (D, S, TS, B))
    yield call("is_not_null", L)


def _numbers() -> Iterator[Expr]:
    for name in ("abs", "sign", "floor", "ceil", "round", "sqrt", "exp", "ln", "log10"):
        yield from (call(name, x) for x in (D, L, K, F))
    yield from (call("power", a, b) for a, b in ((D, E), (K, J), (D, K)))
    yield from (call("round", D, lit(digits, T.INT)) for digits in ROUND_DIGITS)
    yield from (call("round", L, lit(digits, T.INT)) for digits in (0, -2))
    yield call("round", D, lit(None, T.INT))
    yield call("round", call("sqrt", call("abs", D)), lit(3, T.INT))


def _choices() -> Iterator[Expr]:
    for name in ("greatest", "least", "coalesce"):
        yield from (call(name, D, E), call(name, L, K), call(name, K, D, L), call(name, S, R), call(name, D))
        yield from (call(name, TS, U), call(name, B, C), call(name, DAY, DAY))
    yield from (call("nullif", D, E), call("nullif", K, D), call("nullif", S, R), call("nullif", TS, U))
    yield call("in", L, lit(5, T.BIGINT), lit(None, T.BIGINT), lit(1, T.INT), M)
    yield call("in", D, E, lit(1, T.INT), lit(math.nan, T.DOUBLE))
    yield call("in", S, lit("it's", T.STRING), lit("a\\b", T.STRING), R)
    yield call("in", TS, U)
    yield Case(((call(">", D, E), K), (B, L)), None)
    yield Case(((call("is_null", D), lit(0, T.INT)),), D)
    yield Case(((B, lit(None, T.STRING)), (C, S)), lit("else", T.STRING))


def _strings() -> Iterator[Expr]:
    yield from (call(name, S) for name in ("upper", "lower", "trim", "length"))
    yield from (call("concat", S, R), call("concat", S, lit("-\\'${x}", T.STRING), R), call("like", S, P))
    yield from (call("like", S, lit(p, T.STRING)) for p in PATTERNS)
    for start in (-2, 0, 1, 2, 5, 2**31 - 1):
        yield call("substring", S, lit(start, T.INT))
        for length in (-1, 0, 1, 3, 2**31 - 1):
            yield call("substring", S, lit(start, T.INT), lit(length, T.INT))
    yield from (call("substring", S, K), call("substring", S, K, J), call("substring", S, L, M))
    yield call("substring", S, lit(2, T.INT), K)


def _times() -> Iterator[Expr]:
    second = lit(1_000_000, T.INTERVAL)
    odd = lit(-86_400_000_001, T.INTERVAL)
    for gap in (second, odd, call("negate", odd), call("+", odd, second), call("-", second, odd)):
        yield from (call("+", TS, gap), call("+", gap, TS), call("-", TS, gap))
    yield call("<=", call("+", TS, second), U)
    yield call("+", TS, Case(((B, second),), odd))
    yield from (call("date_trunc", lit(unit, T.STRING), TS) for unit in TRUNC_UNITS)
    parts = ("year", "month", "day", "hour", "minute", "second", "unix_seconds", "unix_micros")
    yield from (call(part, TS) for part in parts)
    yield from (call(part, Cast(DAY, T.TIMESTAMP)) for part in parts[:3])


def _casts() -> Iterator[Expr]:
    by_type = {T.DOUBLE: D, T.BIGINT: L, T.INT: K, T.FLOAT: F, T.BOOLEAN: B, T.TIMESTAMP: TS, T.DATE: DAY}
    yield from (Cast(by_type[a], b) for a, b in sorted(CASTS) if a in by_type)


def _literals() -> Iterator[Expr]:
    yield from (lit(v, T.DOUBLE) for v in DOUBLES)
    yield from (lit(v, T.FLOAT) for v in FLOATS)
    yield from (lit(v, T.BIGINT) for v in BIGINTS)
    yield from (lit(v, T.INT) for v in INTS)
    yield from (lit(v, T.STRING) for v in STRINGS)
    yield from (lit(v, T.BOOLEAN) for v in FLAGS)
    yield from (lit(v, T.TIMESTAMP) for v in (None, 0, -1, 1_714_564_800_123_456, -62_135_596_800_000_000))
    yield from (lit(v, T.DATE) for v in (None, 0, -1, 19_844, -719_162))


def scalars() -> list[Expr]:
    parts = (_operators, _numbers, _choices, _strings, _times, _casts, _literals)
    return [e for part in parts for e in part()]


def aggregates() -> list[AggregateCall]:
    """Every aggregate over columns of every type it takes."""
    numbers = [D, L, K, F]
    spread = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
    found = [AggregateCall("count", None)]
    found += [AggregateCall(f, x) for f in ("count", "min", "max") for x in (D, L, K, F, S, B, TS, DAY)]
    found += [AggregateCall(f, x) for f in ("avg", "median", *spread) for x in numbers]
    # A BIGINT sum of the extremes overflows, by design; one of remainders does not.
    found += [AggregateCall("sum", x) for x in (D, K, F, call("%", L, lit(1000, T.INT)))]
    found += [AggregateCall("approx_count_distinct", x) for x in (D, L, S, TS, B)]
    assert all(x.type in NUMBERS for x in numbers)
    return found
