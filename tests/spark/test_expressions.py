"""The two SQL writers against each other: every expression, over awkward values, in Spark and in DuckDB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.plan.text import format_aggregate, format_expr
from headrace.runtime.sqltext import DuckWriter, SparkWriter
from tests.unit.runtime.expression_cases import aggregates, rows, scalars

pytestmark = pytest.mark.spark
LAST_BIT = ("exp(", "ln(", "log10(", "power(", "sqrt(")
"""Functions of the C and Java libraries, which may round the last bit differently."""


@pytest.fixture(scope="module")
def spark(spark_session: Any) -> Iterator[Any]:
    table = rows()
    zoned = table.set_column(
        table.schema.get_field_index("t"), "t", pc.assume_timezone(table["t"], "UTC")
    ).set_column(table.schema.get_field_index("u"), "u", pc.assume_timezone(table["u"], "UTC"))
    spark_session.createDataFrame(zoned).createOrReplaceTempView("awkward")
    yield spark_session
    spark_session.catalog.dropTempView("awkward")


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


def differences(texts: list[str], ours: pa.Table, theirs: pa.Table, close: dict[str, float]) -> list[str]:
    found = []
    for k, (text, mine, other) in enumerate(zip(texts, plain(ours), plain(theirs), strict=True)):
        for row, (a, b) in enumerate(zip(mine, other, strict=True)):
            if not same(a, b, close.get(text, 0.0)):
                found.append(f"{k} {text} row {row}: duckdb {a!r}, spark {b!r}")
                break
    return found


def test_scalars_mean_the_same_in_both_engines(spark: Any, duck: duckdb.DuckDBPyConnection) -> None:
    cases = scalars()
    texts = [format_expr(e) for e in cases]
    mine, other = DuckWriter(), SparkWriter()
    for first in range(0, len(cases), 60):
        part = cases[first : first + 60]
        named = texts[first : first + 60]
        ours = duck.execute(
            f"SELECT {', '.join(f'{mine.expr(e)} AS c{k}' for k, e in enumerate(part))} FROM awkward ORDER BY id"
        ).to_arrow_table()
        theirs = spark.sql(
            f"SELECT {', '.join(f'{other.expr(e)} AS c{k}' for k, e in enumerate(part))} FROM awkward ORDER BY id"
        ).toArrow()
        close = {t: 1e-14 for t in named if any(name in t for name in LAST_BIT)}
        assert differences(named, ours, theirs, close) == []


def test_aggregates_mean_the_same_in_both_engines(spark: Any, duck: duckdb.DuckDBPyConnection) -> None:
    calls = [c for c in aggregates() if c.function != "approx_count_distinct"]
    mine, other = DuckWriter(), SparkWriter()
    tail = "FROM awkward GROUP BY id % 40, id > 600 ORDER BY id % 40, id > 600"
    ours = duck.execute(f"SELECT {', '.join(map(mine.aggregate, calls))} {tail}").to_arrow_table()
    theirs = spark.sql(f"SELECT {', '.join(map(other.aggregate, calls))} {tail}").toArrow()
    assert differences([format_aggregate(c) for c in calls], ours, theirs, {}) == []
