"""The spread of values that are no numbers: NaN, also of one row (Spark says so; DuckDB alone gives 0)."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from headrace.plan import logical as lp
from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.duckdb.reference import evaluate

SCHEMA = Schema([Column("ts", DataType.TIMESTAMP), Column("v", DataType.DOUBLE)])


@pytest.mark.parametrize("function", ["var_pop", "stddev_pop"])
@pytest.mark.parametrize("values", [[math.nan], [math.inf], [1.0, math.nan]])
def test_spread_of_no_number(function: str, values: list[float]) -> None:
    rows = lp.Window(lp.StreamScan("s", SCHEMA, "ts", 0), "ts", lp.WindowSpec(1_000_000, 1_000_000))
    plan = lp.Aggregate(rows, (), (("x", AggregateCall(function, ColumnRef("v", DataType.DOUBLE))),))
    times = pa.array([1] * len(values), pa.timestamp("us", "UTC"))
    answer = evaluate(plan, {"s": pa.table({"ts": times, "v": pa.array(values, pa.float64())})})
    assert math.isnan(answer.column("x").to_pylist()[0])
