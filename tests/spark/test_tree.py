"""A tree on Spark gives every member the answer of a batch evaluation, also when stopped and started
again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headrace.catalog.model import FileSource, Format, Query, Sink, SinkKind, Stream
from headrace.plan.placed import TreeJob, TreeMember, shape_of
from headrace.plan.types import DataType
from headrace.rewrite.driver import rewrite
from headrace.rewrite.merge_projections import merge_projections
from headrace.rewrite.normalise_windows import normalise_windows
from headrace.rewrite.push_filters import push_filters
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import JobContext
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from headrace.service.sharing import weavable
from headrace.sql.bind import bind_query
from tests.spark.harness import context_of, wait, with_files, write_batches

pytestmark = pytest.mark.spark

START = 1_700_000_000_000_000
STREAM = Stream(
    name="s",
    columns={
        "ts": DataType.TIMESTAMP,
        "house": DataType.INT,
        "plug": DataType.BIGINT,
        "load": DataType.DOUBLE,
        "tag": DataType.STRING,
    },
    time="ts",
    watermark=1_000_000,
    rate=100,
    source=FileSource(path="in", format=Format.PARQUET),
)
HOP = "FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{}' SECOND, INTERVAL '{}' SECOND))"
BY = "GROUP BY window_start, window_end, house, plug"
QUERIES = {
    "means": f"SELECT window_start, house, plug, avg(load) AS m, count(*) AS n {HOP.format(2, 10)} {BY}",
    "extremes": (
        "SELECT window_end, plug, house, max(load) AS top, min(tag) AS tag, sum(house) AS houses "
        f"{HOP.format(3, 7)} {BY} HAVING count(*) > 3"
    ),
    "spreads": (
        "SELECT window_start, plug AS p, house, stddev_samp(load) AS sd, sum(load) * 2 AS twice "
        f"{HOP.format(60, 60)} {BY}"
    ),
}


def rows(seed: int, count: int) -> pa.Table:
    """Rows out of order by less than the watermark's delay, some without a load or a tag."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 200_000_000, count)) - rng.integers(0, 900_000, count)
    loads = np.where(rng.random(count) < 0.1, np.nan, rng.normal(50, 10, count))
    tags = np.array(["a", "bb", None, "c"])[rng.integers(0, 4, count)]
    return pa.table(
        {
            "ts": pa.array(START + times, pa.timestamp("us", "UTC")),
            "house": pa.array(rng.integers(0, 4, count), pa.int32()),
            "plug": pa.array(rng.integers(0, 5, count)),
            "load": pa.array(loads, from_pandas=True),
            "tag": pa.array(tags.tolist(), pa.string()),
        }
    )


def member(name: str) -> TreeMember:
    query = Query(name=name, sql=QUERIES[name])
    plan = rewrite(bind_query(query, {"s": STREAM}, {}), (push_filters, normalise_windows, merge_projections))
    aggregate = weavable(plan)
    assert not isinstance(aggregate, str), aggregate
    return TreeMember(name, plan, aggregate)


def made(name: str) -> TreeJob:
    members = tuple(map(member, QUERIES))
    return TreeJob(name, "local", shape_of(members), members)


@pytest.fixture
def executor() -> Iterator[SparkExecutor]:
    engine = SparkExecutor(os.environ)
    yield engine
    engine.close()


def contexts(root: Path, tree: TreeJob) -> tuple[JobContext, dict[str, JobContext]]:
    streams = {"s": with_files(STREAM, root / "in")}
    members = {m.query: context_of(root, streams, {}, name=m.query) for m in tree.members}
    assert all(c.sink == Sink(kind=SinkKind.PARQUET) for c in members.values())
    return context_of(root, streams, {}, name=tree.id), members


def assert_answers(tree: TreeJob, members: dict[str, JobContext], table: pa.Table) -> None:
    for one in tree.members:
        got = read_results(members[one.query].results, SinkKind.PARQUET, one.plan.schema)
        approximate, spread = inexact_columns(one.plan)
        wanted = evaluate(one.plan, {"s": table})
        difference = multiset_difference(wanted, got, approximate=approximate, spread=spread)
        assert wanted.num_rows and not difference.missing and not difference.extra, one.query


def test_a_tree_answers_all_its_members(executor: SparkExecutor, tmp_path: Path) -> None:
    table = rows(1, 6000)
    write_batches(tmp_path / "in", [table.slice(i * 1500, 1500) for i in range(4)])
    tree = made("tree-1")
    context, members = contexts(tmp_path, tree)
    executor.start_tree(tree, context, members, drain=True)
    progress = wait(executor, "tree-1")
    assert_answers(tree, members, table)
    assert progress.late_rows == 0 and progress.input_rows == 6000
    each = [executor.progress(name).output_rows for name in QUERIES]
    assert sum(each) == progress.output_rows and min(each) > 0
    executor.start_tree(tree, context, members, drain=True)
    assert [executor.progress(name).output_rows for name in QUERIES] == each


def test_a_tree_goes_on_where_it_was_stopped(executor: SparkExecutor, tmp_path: Path) -> None:
    table = rows(2, 4000)
    parts = [table.slice(i * 1000, 1000) for i in range(4)]
    write_batches(tmp_path / "in", parts[:2])
    tree = made("tree-2")
    context, members = contexts(tmp_path, tree)
    executor.start_tree(tree, context, members, drain=False)
    deadline = time.monotonic() + 90
    while executor.progress("tree-2").input_rows < 2000:
        assert time.monotonic() < deadline, executor.progress("tree-2")
        time.sleep(0.1)
    executor.stop("tree-2")
    write_batches(tmp_path / "in", parts[2:], first=2)
    executor.start_tree(tree, context, members, drain=True)
    wait(executor, "tree-2")
    assert_answers(tree, members, table)
