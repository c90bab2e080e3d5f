"""Ways to lose rows that were found by review: odd folders, a mark spent in vain, odd strings, late files."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.model import FileSource, Format, SinkKind, Stream
from headrace.errors import UserError
from headrace.plan import logical as lp
from headrace.plan.expr import ColumnRef
from headrace.plan.placed import Job
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import JobContext
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from tests.spark.harness import context_of, drain, with_files, write_batches
from tests.spark.plans import SECOND, START, STREAM, aggregate, joined, random_batches, table
from tests.spark.test_job import LATE_BATCHES

pytestmark = pytest.mark.spark


def from_path(path: str, most: int | None = 1) -> Stream:
    source = FileSource(path=path, format=Format.PARQUET, files_per_batch=most)
    return STREAM.model_copy(update={"source": source})


def check(context: JobContext, plan: lp.LogicalPlan, batches: list[pa.Table]) -> None:
    expected = evaluate(plan, {"s": pa.concat_tables(batches)})
    difference = multiset_difference(expected, read_results(context.results, SinkKind.PARQUET, plan.schema))
    assert not difference, difference.text()


@pytest.mark.parametrize("path", ["in", "{in,on}"])
def test_all_files_are_read_before_the_streams_are_closed(
    path: str, executor: SparkExecutor, tmp_path: Path
) -> None:
    """A folder of partitions and a pattern, below a folder whose name a URL has to quote."""
    root = tmp_path / "odd \u00e9%20 #;+ x"
    batches = random_batches(seed=3)
    for number, batch in enumerate(batches):
        folder = root / "in" / f"day={number}" if path == "in" else root / "in"
        write_batches(folder, [batch], first=number)
    context = context_of(root, {"s": from_path(path)}, {})
    drain(executor, aggregate(), context)
    check(context, aggregate(), batches)


def test_a_folder_that_spark_takes_for_a_pattern_is_refused(executor: SparkExecutor, tmp_path: Path) -> None:
    root = tmp_path / "project[1]"
    write_batches(root / "in", random_batches(seed=3, batches=1))
    with pytest.raises(UserError, match="for a pattern"):
        drain(executor, aggregate(), context_of(root, {"s": from_path("in")}, {}))


def test_a_kill_after_the_output_and_before_the_batch_was_committed(
    executor: SparkExecutor, tmp_path: Path
) -> None:
    """Spark then skips the batch that had the close marks, and with it their watermark."""
    batches = random_batches(seed=5, batches=2)
    write_batches(tmp_path / "in", batches)
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in", None)}, {})
    drain(executor, joined(), context)
    (context.state / "finished.json").unlink()
    for log in ("checkpoint/offsets", "checkpoint/commits", "staging/_spark_metadata"):
        for path in (context.state / log).iterdir():
            number = int(path.name.strip(".").split(".")[0])
            if number > 0 or (number == 0 and log.endswith("commits")):
                path.unlink()
    drain(executor, joined(), context)
    check(context, joined(), batches)


ODD = ["a", 'say "hi", ok', "back\\", "q,b\\", "cr\rx", "nl\nx", '"', '\\"', " lead", "", None, "#c", "\\,"]


def test_odd_strings_in_csv(executor: SparkExecutor, tmp_path: Path) -> None:
    schema = Schema([Column("ts", DataType.TIMESTAMP), Column("v", DataType.STRING)])
    times = pa.array([START + i * SECOND for i in range(len(ODD))], pa.timestamp("us", "UTC"))
    write_batches(tmp_path / "in", [pa.table({"ts": times, "v": pa.array(ODD)})])
    stream = from_path("in").model_copy(update={"columns": {c.name: c.type for c in schema}})
    plan = lp.Project(
        lp.StreamScan("s", schema, "ts", 0), tuple((c.name, ColumnRef(c.name, c.type)) for c in schema)
    )
    context = context_of(tmp_path, {"s": stream}, {}, sink=SinkKind.CSV)
    assert drain(executor, plan, context).output_rows == len(ODD)
    got = read_results(context.results, SinkKind.CSV, schema)
    assert sorted(got.column("v").to_pylist(), key=str) == sorted(ODD, key=str)


def test_late_rows_of_a_folder_beside_the_project(executor: SparkExecutor, tmp_path: Path) -> None:
    """Spark's log has no `..` in its paths; and names with brackets are names."""
    write_batches(tmp_path / "in", [table(rows) for rows in LATE_BATCHES])
    for path in sorted((tmp_path / "in").iterdir()):
        path.rename(path.with_name(f"[{path.stem}].parquet"))
    (tmp_path / "project").mkdir()
    context = context_of(tmp_path / "project", {"s": from_path("../in")}, {})
    assert drain(executor, aggregate(), context).late_rows == 5


def test_a_file_taken_away_does_not_stop_the_job(executor: SparkExecutor, tmp_path: Path) -> None:
    """Late rows are counted from the files; one that is gone cannot be read again."""
    write_batches(tmp_path / "in", [table(rows) for rows in LATE_BATCHES[:3]])
    context = context_of(tmp_path, {"s": from_path("in")}, {})
    job = Job("q", "q", "local", aggregate())
    executor.start(job, context, drain=False)
    deadline = time.monotonic() + 60
    while executor.progress("q").late_rows == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    executor.stop("q")
    (context.state / "late.json").unlink()
    for path in (tmp_path / "in").iterdir():
        path.unlink()
    write_batches(tmp_path / "in", [table(LATE_BATCHES[3])], first=3)
    drain(executor, job.plan, context)
