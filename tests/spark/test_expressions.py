"""The two SQL writers against each other: every expression, over awkward values, in Spark and in DuckDB."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.plan.expr import AggregateCall, Expr
from headrace.plan.text import format_aggregate, format_expr
from headrace.plan.types import DataType
from headrace.runtime.results import ARROW
from headrace.runtime.spark.session import Sessions
from headrace.runtime.sqltext import DuckWriter, SparkWriter
from tests.unit.runtime.expression_cases import aggregates, rows, scalars

pytestmark = pytest.mark.spark
Tables = tuple[pa.Table, pa.Table]
LAST_BIT = ("exp(", "ln(", "log10(", "power(", "sqrt(")
"""Functions of the C and Java libraries, which may round the last bit differently."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A session with the table `awkward`. Not stopped here: all tests of a process share one."""
    session = Sessions(os.environ, scratch=tmp_path_factory.mktemp("spark")).get("local[2]", 2)
    table = rows()
    for name in ("t", "u"):
        zoned = pc.assume_timezone(table[name], "UTC")
        table = table.set_column(table.schema.get_field_index(name), name, zoned)
    session.createDataFrame(table).createOrReplaceTempView("awkward")
    return session


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("awkward", rows())
        yield connection


def same(left: object, right: object, close: float) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=close, abs_tol=0.0)
    return type(left) is type(right) and left == right


def plain(table: pa.Table) -> list[list[object]]:
    """Columns as Python values, timestamps as microseconds."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us")).cast(pa.int64())
        columns.append(column.to_pylist())
    return columns


def is_near(a: object, b: object, size: float | None = None) -> bool:
    return isinstance(a, float) and isinstance(b, float) and abs(a - b) <= 1e-15 * (size or 0.0)


def differences(
    texts: list[str],
    ours: pa.Table,
    theirs: pa.Table,
    close: dict[str, float],
    terms: dict[str, list[float | None]] | None = None,
) -> list[str]:
    """The first row of each column in which the engines do not agree. `terms`: the sum of the sizes of what a
    sum is made of, by row. Spark's sums of doubles are as exact as their largest terms allow, and where these
    cancel each other out, not more than that is asked."""
    found = []
    for text, mine, other in zip(texts, plain(ours), plain(theirs), strict=True):
        for row, (a, b) in enumerate(zip(mine, other, strict=True)):
            size = (terms or {}).get(text, [])[row : row + 1]
            if not same(a, b, close.get(text, 0.0)) and not is_near(a, b, *size):
                found.append(f"{text} row {row}: duckdb {a!r}, spark {b!r}")
                break
    return found


def both(spark: Any, duck: duckdb.DuckDBPyConnection, texts: list[tuple[str, str]], tail: str) -> Tables:
    ours = ", ".join(f"{mine} AS c{k}" for k, (mine, _) in enumerate(texts))
    theirs = ", ".join(f"{other} AS c{k}" for k, (_, other) in enumerate(texts))
    return duck.sql(f"SELECT {ours} {tail}").to_arrow_table(), spark.sql(f"SELECT {theirs} {tail}").toArrow()


def test_scalars_mean_the_same_in_both_engines(spark: Any, duck: duckdb.DuckDBPyConnection) -> None:
    cases, mine, other = scalars(), DuckWriter(), SparkWriter()
    for first in range(0, len(cases), 60):
        part = cases[first : first + 60]
        texts = [(mine.expr(e), other.expr(e)) for e in part]
        ours, theirs = both(spark, duck, texts, "FROM awkward ORDER BY id")
        named = [format_expr(e) for e in part]
        close = {t: 1e-14 for t in named if any(name in t for name in LAST_BIT)}
        assert differences(named, ours, theirs, close) == []
        check_types(part, ours, theirs)


def check_types(cases: list[Expr], ours: pa.Table, theirs: pa.Table) -> None:
    """The type an expression declares is the one that both engines give."""
    for case, own, their in zip(cases, ours.schema, theirs.schema, strict=True):
        wanted = ARROW[case.type]
        assert own.type == wanted, format_expr(case)
        zoned = pa.timestamp("us", "UTC") if case.type is DataType.TIMESTAMP else wanted
        assert their.type == zoned, format_expr(case)


GROUPED = "FROM awkward GROUP BY id % 40, id > 600 ORDER BY id % 40, id > 600"


def test_aggregates_mean_the_same_in_both_engines(spark: Any, duck: duckdb.DuckDBPyConnection) -> None:
    calls = [c for c in aggregates() if c.function != "approx_count_distinct"]
    mine, other = DuckWriter(), SparkWriter()
    texts = [(mine.aggregate(c), other.aggregate(c)) for c in calls]
    ours, theirs = both(spark, duck, texts, GROUPED)
    named = [format_aggregate(c) for c in calls]
    inexact = ("sum", "avg", "var", "stddev", "median")
    close = {t: 1e-12 for t in named if t.startswith(inexact)}
    assert differences(named, ours, theirs, close, sizes_of_terms(duck, calls)) == []


def sizes_of_terms(
    duck: duckdb.DuckDBPyConnection, calls: list[AggregateCall]
) -> dict[str, list[float | None]]:
    """Of the means and sums of large whole numbers, whose terms can cancel each other out."""
    found = {}
    for call in calls:
        if call.arg is not None and call.function == "avg" and call.arg.type is DataType.BIGINT:
            text = f"SELECT sum(abs(CAST({DuckWriter().expr(call.arg)} AS DOUBLE))) {GROUPED}"
            found[format_aggregate(call)] = [row[0] for row in duck.sql(text).fetchall()]
    return found


def test_approximate_counts_are_near_the_exact_ones(spark: Any, duck: duckdb.DuckDBPyConnection) -> None:
    calls = [c for c in aggregates() if c.function == "approx_count_distinct"]
    mine, other = DuckWriter(), SparkWriter()
    exact, near = both(spark, duck, [(mine.aggregate(c), other.aggregate(c)) for c in calls], GROUPED)
    for wanted, found in zip(plain(exact), plain(near), strict=True):
        for a, b in zip(wanted, found, strict=True):
            assert isinstance(a, int) and isinstance(b, int)
            assert abs(a - b) <= 0.2 * a + 2


def test_nothing_raises_in_an_empty_group(spark: Any, duck: duckdb.DuckDBPyConnection) -> None:
    calls, mine, other = aggregates(), DuckWriter(), SparkWriter()
    texts = [(mine.aggregate(c), other.aggregate(c)) for c in calls]
    ours, theirs = both(spark, duck, texts, "FROM awkward WHERE d IS NULL AND l IS NULL AND id < 1")
    assert differences([format_aggregate(c) for c in calls], ours, theirs, {}) == []
