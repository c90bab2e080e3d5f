"""Queries split between Spark and DuckDB give the reference's answer: all kinds of splits, stopped and
started again, handed over, with late rows and with joins of streams."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.catalog.model import SinkKind
from headrace.errors import UserError
from headrace.plan.federated import Engine, FederatedJob, FederatedMember, operators
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.federated.ledger import Ledger
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from headrace.runtime.spark.federated import FederatedRun
from tests.federated_cases import (
    QUERIES,
    SECOND,
    STREAM,
    TABLES,
    answer,
    difference,
    plan_of,
    readings,
    sliced,
    watermarks,
    with_arrival,
)
from tests.spark.harness import context_of, wait, with_files, write_batches

pytestmark = pytest.mark.spark

JOINED = (
    "SELECT window_start, window_end, a.plug, count(*) AS n, max(b.value) AS top FROM readings AS a "
    "JOIN readings AS b ON a.plug = b.plug AND a.house = b.house AND b.ts >= a.ts "
    "AND b.ts <= a.ts + INTERVAL 2 SECONDS WHERE a.property = 'load' "
    "GROUP BY window(a.ts, '6 seconds', '2 seconds'), a.plug"
)
NAMED = (
    "SELECT y.window_start, y.window_end, t.name, y.n FROM (SELECT window_start, window_end, house, "
    "count(*) AS n FROM readings [RANGE 5 SECONDS SLIDE 2 SECONDS] GROUP BY house HAVING count(*) > 12) AS y "
    "JOIN names AS t ON y.house = t.house"
)
SINKS = {"cq1": SinkKind.JSON, "named": SinkKind.CSV}


def engines(letters: str) -> tuple[Engine, ...]:
    return tuple(Engine.SPARK if letter == "s" else Engine.DUCKDB for letter in letters)


def member(query: str, sql: str, split: str) -> FederatedMember:
    plan = plan_of(sql)
    assert len(split) == len(operators(plan)), [type(n).__name__ for n in operators(plan)]
    return FederatedMember(query, plan, engines(split))


def sink(query: str) -> SinkKind:
    return SINKS.get(query, SinkKind.PARQUET)


def contexts(root: Path, job: FederatedJob) -> tuple[JobContext, dict[str, JobContext]]:
    streams = {"readings": with_files(STREAM, root / "in")}
    members = {
        m.query: context_of(root, streams, TABLES, name=m.query, sink=sink(m.query)) for m in job.members
    }
    return context_of(root, streams, TABLES, name=job.id), members


def start(executor: SparkExecutor, root: Path, job: FederatedJob, *, drain: bool) -> None:
    context, members = contexts(root, job)
    executor.start_federated(job, context, members, drain=drain)


def results(root: Path, one: FederatedMember) -> pa.Table:
    return read_results(root / "results" / one.query, sink(one.query), one.plan.schema)


def assert_answers(root: Path, job: FederatedJob, rows: pa.Table) -> None:
    for one in job.members:
        wanted = answer(one.plan, rows)
        found = difference(one.plan, wanted, results(root, one))
        assert wanted.num_rows and not found, f"{one.query}: {found.text()}"


def until(executor: SparkExecutor, job: str, ready: Mapping[str, int]) -> Progress:
    """Until the job's progress has reached these numbers."""
    deadline = time.monotonic() + 6000
    while any((getattr(executor.progress(job), name) or 0) < least for name, least in ready.items()):
        assert time.monotonic() < deadline, executor.progress(job)
        time.sleep(0.1)
    return executor.progress(job)


def test_members_of_all_kinds_in_one_job(executor: SparkExecutor, tmp_path: Path) -> None:
    rows = readings(11, 26)
    write_batches(tmp_path / "in", sliced(rows, 2))
    job = FederatedJob(
        "fed-kinds",
        "local",
        (
            member("cq1", QUERIES["cq1"], "ssddd"),
            member("native", QUERIES["cq3"], "ssssd"),
            member("above", QUERIES["cq3"], "sdsds"),
            member("spark", QUERIES["cq5"], "sss"),
            member("named", NAMED, "dds"),
            member("joined", JOINED, "d"),
        ),
    )
    start(executor, tmp_path, job, drain=True)
    progress = wait(executor, "fed-kinds", 900)
    assert_answers(tmp_path, job, rows)
    each = [executor.progress(m.query).output_rows for m in job.members]
    assert sum(each) == progress.output_rows and min(each) > 0
    assert progress.late_rows == 0 and progress.input_rows == rows.num_rows
    start(executor, tmp_path, job, drain=True)
    assert executor.status("fed-kinds") is JobState.FINISHED
    assert [executor.progress(m.query).output_rows for m in job.members] == each


@pytest.mark.parametrize(
    ("query", "split", "other"),
    [("cq5", "dss", "ddd"), ("cq5", "ssd", "ddd"), ("cq1", "ddddd", "ssddd")],
)
def test_a_job_goes_on_where_it_was_stopped(
    executor: SparkExecutor, tmp_path: Path, query: str, split: str, other: str
) -> None:
    rows = readings(12, 30)
    batches = sliced(rows, 4)
    write_batches(tmp_path / "in", batches[:2])
    name = f"fed-{split}"
    job = FederatedJob(name, "local", (member(query, QUERIES[query], split),))
    start(executor, tmp_path, job, drain=False)
    until(executor, name, {"batch": 1})
    executor.stop(name)
    assert executor.progress(query).state is JobState.STOPPED
    _uncommit(contexts(tmp_path, job)[0].state)
    write_batches(tmp_path / "in", batches[2:], first=2)
    start(executor, tmp_path, job, drain=True)
    wait(executor, name, 600)
    assert_answers(tmp_path, job, rows)
    changed = FederatedJob(name, "local", (member(query, QUERIES[query], other),))
    with pytest.raises(UserError, match="changed since its last run"):
        start(executor, tmp_path, changed, drain=True)


def test_a_history_comes_in_batches_of_so_many_bytes(
    executor: SparkExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing says how many files are a batch; all of them at once may be more than memory can hold."""
    rows = readings(14, 30)
    write_batches(tmp_path / "in", sliced(rows, 6))
    largest = max(path.stat().st_size for path in (tmp_path / "in").iterdir())
    monkeypatch.setattr(FederatedRun, "_most_bytes", 2 * largest)
    job = FederatedJob("fed-bytes", "local", (member("cq1", QUERIES["cq1"], "ssddd"),))
    _, members = contexts(tmp_path, job)
    streams = {"readings": with_files(STREAM, tmp_path / "in", None)}
    context = context_of(tmp_path, streams, TABLES, name=job.id)
    executor.start_federated(job, context, members, drain=True)
    wait(executor, "fed-bytes", 600)
    read = list((context.state / "checkpoint" / "sources").glob("*/[0-9]*"))
    with_rows = [path.read_text().count(".parquet") for path in read if "/in/" in path.read_text()]
    assert len(with_rows) >= 3 and max(with_rows) <= 3
    assert_answers(tmp_path, job, rows)


def _uncommit(state: Path) -> None:
    """As after a kill when a batch was done and Spark had not yet written that down: it repeats the batch. A
    stop may have come just then by itself, or when the next batch was planned."""
    done = Ledger(state / "federated").done().batch
    for folder, first in (("offsets", done + 1), ("commits", done)):
        for path in (state / "checkpoint" / folder).iterdir():
            name = path.name.removeprefix(".").removesuffix(".crc")
            if name.isdigit() and int(name) >= first:
                path.unlink()
    assert (state / "checkpoint" / "offsets" / f"{done}").exists()


def test_one_job_takes_over_from_another_while_rows_come(executor: SparkExecutor, tmp_path: Path) -> None:
    rows = readings(13, 60)
    batches = sliced(rows, 6)
    write_batches(tmp_path / "in", batches[:2])
    old = FederatedJob("fed-old", "local", (member("cq2", QUERIES["cq2"], "ssddd"),))
    start(executor, tmp_path, old, drain=False)
    # No row comes after the second batch: the windows it closes are given all the same.
    first_marks = watermarks(batches, 0)
    until(executor, "fed-old", {"output_rows": 1})
    deadline = time.monotonic() + 600
    while _last_end(results(tmp_path, old.members[0])) < first_marks[2] // SECOND * SECOND:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    seen = executor.seen_until("fed-old")
    assert seen is not None and pc.max(pc.cast(batches[1]["ts"], pa.int64())).as_py() <= seen
    turn = seen + 20 * SECOND
    executor.set_until("fed-old", ["cq2"], turn)
    plan = old.members[0].plan
    new = FederatedJob("fed-new", "local", (FederatedMember("cq2", plan, engines("ddddd"), after=turn),))
    start(executor, tmp_path, new, drain=False)
    write_batches(tmp_path / "in", batches[2:], first=2)
    wait(executor, "fed-old", 600)
    assert executor.status("fed-old") is JobState.FINISHED
    until(executor, "fed-new", {"batch": 5})
    executor.stop("fed-new")
    start(executor, tmp_path, new, drain=True)
    wait(executor, "fed-new", 600)
    assert_answers(tmp_path, new, rows)
    parts = [executor.progress(job).output_rows for job in ("fed-old", "fed-new")]
    assert min(parts) > 0 and sum(parts) == answer(plan, rows).num_rows


def _last_end(rows: pa.Table) -> int:
    ends = pc.cast(rows["window_end"], pa.int64())
    return int(pc.max(ends).as_py() or 0)


def test_late_rows_miss_what_was_given_and_are_counted(executor: SparkExecutor, tmp_path: Path) -> None:
    rows = readings(14, 60, disorder=30 * SECOND)
    batches: Sequence[pa.Table] = sliced(rows, 5)
    write_batches(tmp_path / "in", batches)
    job = FederatedJob(
        "fed-late",
        "local",
        (member("cq1", QUERIES["cq1"], "ssddd"), member("native", QUERIES["cq5"], "ssd")),
    )
    start(executor, tmp_path, job, drain=True)
    wait(executor, "fed-late", 600)
    late = with_arrival(batches, watermarks(batches, 0))
    assert_answers(tmp_path, job, late)
    loads = late.filter(pc.equal(late["property"], "load"))
    ends = [t // SECOND * SECOND + SECOND for t in pc.cast(loads["ts"], pa.int64()).to_pylist()]
    missed = sum(e <= w for e, w in zip(ends, loads["arrival"].to_pylist(), strict=True))
    assert missed > 0
    assert [executor.progress(name).late_rows for name in ("cq1", "native")] == [missed, missed]
    start(executor, tmp_path, job, drain=True)
    assert [executor.progress(name).late_rows for name in ("cq1", "native")] == [missed, missed]
