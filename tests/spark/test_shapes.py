"""Every plan shape on Spark, against the DuckDB reference."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.model import SinkKind
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from tests.spark.harness import context_of, drain, with_files, write_batches
from tests.spark.plans import SHAPES, STREAM, random_batches

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_reference(shape: str, executor: SparkExecutor, tmp_path: Path) -> None:
    plan, batches = SHAPES[shape], random_batches(seed=7)
    write_batches(tmp_path / "in", batches)
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {}, name=shape)
    progress = drain(executor, plan, context, shape)
    got = read_results(context.results, SinkKind.PARQUET, plan.schema)
    expected = evaluate(plan, {"s": pa.concat_tables(batches)})
    assert expected.num_rows > 0
    difference = multiset_difference(expected, got)
    assert not difference, difference.text()
    assert progress.output_rows == expected.num_rows
    assert progress.late_rows == 0
