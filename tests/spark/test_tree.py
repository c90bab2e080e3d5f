"""A tree on Spark gives every member the answer of a batch evaluation, also when stopped and started
again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.catalog.model import FileSource, Format, Query, SinkKind, Stream, Table
from headrace.plan.placed import TreeJob, TreeMember, shape_of
from headrace.plan.types import DataType
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.load import load_table
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import JobContext
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from headrace.service.members import normal_form, weavable
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
NAMES = Table(
    name="names",
    columns={"house": DataType.INT, "name": DataType.STRING},
    rows=((0, 'a "quoted", name'), (1, "bb"), (2, None)),
)
SINKS = {"means": SinkKind.JSON, "some": SinkKind.CSV, "houses": SinkKind.CSV, "extremes": SinkKind.JSON}
HOP = "FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{}' SECOND, INTERVAL '{}' SECOND))"
BY = "GROUP BY window_start, window_end, house, plug"
QUERIES = {
    "means": f"SELECT window_start, house, plug, avg(load) AS m, count(*) AS n {HOP.format(2, 10)} {BY}",
    "extremes": (
        "SELECT window_end, plug, house, max(load) AS top, min(tag) AS tag, sum(house) AS houses "
        f"{HOP.format(3, 7)} {BY} HAVING count(*) > 3"
    ),
    "some": f"SELECT window_end, house, plug, sum(load) AS x {HOP.format(2, 9)} WHERE load > 50 {BY}",
    "others": (
        "SELECT window_end, plug, count(*) AS n, approx_count_distinct(tag) AS tags "
        f"{HOP.format(4, 8)} WHERE load <= 50 AND house < 3 GROUP BY window_start, window_end, plug"
    ),
    "houses": (
        "SELECT y.window_end, y.house, n.name, y.m FROM (SELECT window_start, window_end, house, avg(load) "
        f"AS m {HOP.format(5, 10)} GROUP BY window_start, window_end, house) AS y "
        "LEFT JOIN names AS n ON y.house = n.house"
    ),
    "top": (
        "SELECT window_end, max(x) AS x, count(*) AS plugs FROM (SELECT window_start, window_end, plug, "
        f"sum(load) AS x {HOP.format(5, 10)} GROUP BY window_start, window_end, plug) AS y "
        "GROUP BY window_start, window_end"
    ),
    "all": (
        "SELECT window_end, count(*) AS n, min(load) AS low "
        f"{HOP.format(7, 7)} GROUP BY window_end, window_start"
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
    plan = normal_form(bind_query(query, {"s": STREAM}, {"names": NAMES}))
    aggregate = weavable(plan)
    assert not isinstance(aggregate, str), aggregate
    return TreeMember(name, plan, aggregate)


def made(name: str, queries: Sequence[str] = tuple(QUERIES)) -> TreeJob:
    """A tree of some queries, in the shape of all of them."""
    shape = shape_of(tuple(map(member, QUERIES)))
    return TreeJob(name, "local", shape, tuple(map(member, queries)))


def sink(query: str) -> SinkKind:
    return SINKS.get(query, SinkKind.PARQUET)


def contexts(root: Path, tree: TreeJob) -> tuple[JobContext, dict[str, JobContext]]:
    streams = {"s": with_files(STREAM, root / "in")}
    tables = {"names": NAMES}
    members = {
        m.query: context_of(root, streams, tables, name=m.query, sink=sink(m.query)) for m in tree.members
    }
    return context_of(root, streams, tables, name=tree.id), members


def assert_answer(one: TreeMember, context: JobContext, table: pa.Table, first: int | None = None) -> None:
    """The answer of a batch evaluation, of windows that start at `first` or later."""
    got = read_results(context.results, sink(one.query), one.plan.schema)
    approximate, spread = inexact_columns(one.plan)
    wanted = evaluate(one.plan, {"s": table, "names": load_table(NAMES, Path())})
    if first is not None:
        end = "window_end" if "window_end" in wanted.column_names else "window_start"
        size = one.window.spec.range if end == "window_end" else 0
        wanted = wanted.filter(pc.greater_equal(pc.cast(wanted[end], pa.int64()), first + size))
    difference = multiset_difference(wanted, got, approximate=approximate, spread=spread)
    assert wanted.num_rows and not difference, f"{one.query}: {difference.text()}"


def assert_answers(tree: TreeJob, members: dict[str, JobContext], table: pa.Table) -> None:
    for one in tree.members:
        assert_answer(one, members[one.query], table)


def until(executor: SparkExecutor, job: str, rows: int) -> None:
    deadline = time.monotonic() + 90
    while executor.progress(job).input_rows < rows:
        assert time.monotonic() < deadline, executor.progress(job)
        time.sleep(0.1)


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
    until(executor, "tree-2", 2000)
    executor.stop("tree-2")
    write_batches(tmp_path / "in", parts[2:], first=2)
    executor.start_tree(tree, context, members, drain=True)
    wait(executor, "tree-2")
    assert_answers(tree, members, table)


def test_members_come_and_go_and_the_others_neither_lose_nor_repeat(
    executor: SparkExecutor, tmp_path: Path
) -> None:
    table = rows(3, 8000)
    parts = [table.slice(i * 2000, 2000) for i in range(4)]
    write_batches(tmp_path / "in", parts[:2])
    first = made("tree-3", ["means", "some", "top"])
    context, members = contexts(tmp_path, first)
    executor.start_tree(first, context, members, drain=False)
    until(executor, "tree-3", 4000)
    executor.stop("tree-3")
    later = made("tree-3", ["means", "extremes", "top", "houses"])
    context, members = contexts(tmp_path, later)
    write_batches(tmp_path / "in", parts[2:], first=2)
    executor.start_tree(later, context, members, drain=True)
    wait(executor, "tree-3")
    starts = {m.query: executor.progress(m.query).valid_from for m in later.members}
    assert starts["means"] is None and starts["top"] is None
    for one in later.members:
        assert_answer(one, members[one.query], table, starts[one.query])
    for query in ("extremes", "houses"):
        start = starts[query]
        assert start is not None and START + 90_000_000 <= start < START + 130_000_000
