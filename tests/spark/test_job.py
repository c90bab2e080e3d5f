"""What a job promises besides right answers: late rows, stop and resume, closing, sinks, refusals."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.model import RateSource, SinkKind, Stream
from headrace.errors import UserError
from headrace.plan import logical as lp
from headrace.plan.placed import Job
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import JobState
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from tests.spark.harness import context_of, drain, wait, with_files, write_batches
from tests.spark.plans import (
    DELAY,
    SECOND,
    SHAPES,
    START,
    STREAM,
    Row,
    aggregate,
    joined,
    random_batches,
    table,
)

pytestmark = pytest.mark.spark


def at(seconds: float, plug: int = 1, value: float = 50.0) -> Row:
    return (START + int(seconds * SECOND), plug, value)


LATE_BATCHES: list[list[Row]] = [
    [at(0), at(20), at(40, 2)],
    [at(60), at(30.5), at(58)],
    # The watermark of the batch before last is 35 s: one row has missed all of its windows, three that
    # fall into one group have missed some, one has missed none.
    [at(3), at(31.5), at(31.6), at(31.7), at(59), at(80)],
    [at(100), at(41, 2), at(99)],
]


def arrivals(batches: list[list[Row]]) -> pa.Table:
    """All rows with the watermark in force: the one that the rows up to the batch before last gave."""
    tables: list[pa.Table] = []
    seen: list[int | None] = [None, None]
    newest: int | None = None
    for rows in batches:
        mark = seen[-2]
        tables.append(table(rows).append_column("mark", pa.array([mark] * len(rows), pa.int64())))
        newest = max([r[0] for r in rows] + ([] if newest is None else [newest]))
        seen.append(newest - DELAY)
    return pa.concat_tables(tables)


@pytest.mark.parametrize(("name", "late"), [("window", 5), ("join", 5)])
def test_late_rows_are_dropped_and_counted(
    name: str, late: int, executor: SparkExecutor, tmp_path: Path
) -> None:
    plan = aggregate() if name == "window" else joined()
    write_batches(tmp_path / "in", [table(rows) for rows in LATE_BATCHES])
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {})
    progress = drain(executor, plan, context)
    expected = evaluate(plan, {"s": arrivals(LATE_BATCHES)}, arrival_watermark={"s": "mark"})
    everything = evaluate(plan, {"s": pa.concat_tables([table(rows) for rows in LATE_BATCHES])})
    got = read_results(context.results, SinkKind.PARQUET, plan.schema)
    difference = multiset_difference(expected, got)
    assert not difference, difference.text()
    assert multiset_difference(everything, got), "nothing was late: the test tests nothing"
    assert progress.late_rows == late * (2 if name == "join" else 1)


def test_stop_and_resume_loses_and_repeats_nothing(executor: SparkExecutor, tmp_path: Path) -> None:
    batches = random_batches(seed=3, batches=6)
    write_batches(tmp_path / "in", batches[:3])
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {})
    job = Job("q", "q", "local", aggregate())
    executor.start(job, context, drain=False)
    deadline = time.monotonic() + 60
    while executor.progress("q").output_rows == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    executor.stop("q")
    assert executor.status("q") is JobState.STOPPED
    before = read_results(context.results, SinkKind.PARQUET, job.plan.schema).num_rows
    write_batches(tmp_path / "in", batches[3:], first=3)
    progress = drain(executor, job.plan, context)
    got = read_results(context.results, SinkKind.PARQUET, job.plan.schema)
    expected = evaluate(job.plan, {"s": pa.concat_tables(batches)})
    assert 0 < before < expected.num_rows
    difference = multiset_difference(expected, got)
    assert not difference, difference.text()
    assert progress.output_rows == expected.num_rows


def test_a_drained_job_is_closed(executor: SparkExecutor, tmp_path: Path) -> None:
    batches = random_batches(seed=4)
    write_batches(tmp_path / "in", batches)
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {})
    first = drain(executor, aggregate(), context)
    again = drain(executor, aggregate(), context)
    assert again.output_rows == first.output_rows > 0
    assert again.notes == ("drained by an earlier run; nothing new",)
    assert again.batch == first.batch
    with pytest.raises(UserError, match="was drained"):
        executor.start(Job("q", "q", "local", aggregate()), context, drain=False)
    write_batches(tmp_path / "in", batches[:1], first=9)
    with pytest.raises(UserError, match="was drained") as caught:
        drain(executor, aggregate(), context)
    assert "0009.parquet" in caught.value.detail


def test_without_state_and_input_a_job_is_drained_without_a_batch(
    executor: SparkExecutor, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {})
    for _ in range(2):
        progress = drain(executor, SHAPES["stateless"], context)
        assert (progress.state, progress.batch, progress.output_rows) == (JobState.FINISHED, None, 0)


def test_a_changed_query_does_not_take_over_old_state(executor: SparkExecutor, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", random_batches(seed=5))
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {})
    drain(executor, aggregate(), context)
    other = aggregate(lp.WindowSpec(12 * SECOND, 3 * SECOND))
    with pytest.raises(UserError, match="was changed since its last run"):
        drain(executor, other, context)


@pytest.mark.parametrize("kind", [SinkKind.JSON, SinkKind.CSV])
def test_text_sinks(kind: SinkKind, executor: SparkExecutor, tmp_path: Path) -> None:
    batches = random_batches(seed=6, batches=2)
    write_batches(tmp_path / "in", batches)
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {}, sink=kind)
    plan = SHAPES["aggregate"]
    progress = drain(executor, plan, context)
    got = read_results(context.results, kind, plan.schema)
    difference = multiset_difference(evaluate(plan, {"s": pa.concat_tables(batches)}), got)
    assert not difference, difference.text()
    assert progress.output_rows == got.num_rows > 0


def test_memory_sink_keeps_rows_in_the_process(executor: SparkExecutor, tmp_path: Path) -> None:
    batches = random_batches(seed=8, batches=2)
    write_batches(tmp_path / "in", batches)
    context = context_of(
        tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {}, sink=SinkKind.MEMORY, name="m"
    )
    for _ in range(2):
        drain(executor, SHAPES["aggregate"], context, "m")
        got = pa.concat_tables(executor.rows("m"))
        expected = evaluate(SHAPES["aggregate"], {"s": pa.concat_tables(batches)})
        assert not multiset_difference(expected, got)
    assert not context.results.exists()


def test_an_endless_stream_cannot_be_drained_but_runs(executor: SparkExecutor, tmp_path: Path) -> None:
    schema = Schema([Column("timestamp", DataType.TIMESTAMP), Column("value", DataType.BIGINT)])
    ticks = Stream(
        name="ticks",
        columns={c.name: c.type for c in schema},
        time="timestamp",
        source=RateSource(rows_per_second=200),
    )
    job = Job("r", "r", "local", lp.StreamScan("ticks", schema, "timestamp", 0))
    context = context_of(tmp_path, {"ticks": ticks}, {}, name="r")
    with pytest.raises(UserError, match="never ends"):
        executor.start(job, context, drain=True)
    executor.start(job, context, drain=False)
    deadline = time.monotonic() + 60
    while executor.progress("r").output_rows == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    executor.stop("r")
    rows = read_results(context.results, SinkKind.PARQUET, schema)
    assert sorted(rows.column("value").to_pylist()) == list(range(rows.num_rows))
    newest = max(rows.column("timestamp").to_pylist())
    assert abs((datetime.now(UTC).replace(tzinfo=None) - newest).total_seconds()) < 120


def test_a_missing_folder_is_the_users_to_fix(executor: SparkExecutor, tmp_path: Path) -> None:
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "nowhere")}, {})
    with pytest.raises(UserError, match="there is no folder"):
        executor.start(Job("q", "q", "local", aggregate()), context, drain=True)


def test_a_failing_query_says_why(executor: SparkExecutor, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "broken.parquet").write_bytes(b"this is no parquet file")
    context = context_of(tmp_path, {"s": with_files(STREAM, folder)}, {})
    executor.start(Job("f", "f", "local", aggregate()), context, drain=True)
    with pytest.raises(AssertionError, match=r"broken.parquet|FAILED_READ_FILE|not a Parquet file"):
        wait(executor, "f")
    assert executor.status("f") is JobState.FAILED
