"""Runs one plan on Spark over batches of rows and reads back what it gave."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import FileSource, Format, Sink, SinkKind, Stream, Table
from headrace.plan import logical as lp
from headrace.plan.placed import Job
from headrace.runtime.executor import ENDED, JobContext, JobState, Progress
from headrace.runtime.spark.executor import SparkExecutor

_EPOCH = 1_600_000_000


def write_batches(folder: Path, batches: Sequence[pa.Table], first: int = 0) -> None:
    """One Parquet file a batch; Spark takes files in the order of their modification times."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, start=first):
        staged = folder / f".{number:04d}.tmp"
        pq.write_table(batch, staged)
        os.utime(staged, (_EPOCH + 10 * number, _EPOCH + 10 * number))
        staged.rename(folder / f"{number:04d}.parquet")


def with_files(stream: Stream, folder: Path, files_per_batch: int | None = 1) -> Stream:
    source = FileSource(path=str(folder), format=Format.PARQUET, files_per_batch=files_per_batch)
    return stream.model_copy(update={"source": source})


def context_of(
    root: Path,
    streams: Mapping[str, Stream],
    tables: Mapping[str, Table],
    *,
    name: str = "q",
    sink: SinkKind = SinkKind.PARQUET,
    endpoint: str = "local[2]",
) -> JobContext:
    return JobContext(
        streams=streams,
        tables=tables,
        sink=Sink(kind=sink),
        root=root,
        state=root / ".headrace" / "jobs" / name,
        results=root / "results" / name,
        endpoint=endpoint,
    )


def wait(executor: SparkExecutor, job_id: str, seconds: float = 120) -> Progress:
    """Until the job has ended; an assertion if it has not by then, or failed."""
    deadline = time.monotonic() + seconds
    while executor.status(job_id) not in ENDED:
        assert time.monotonic() < deadline, f"{job_id} still runs: {executor.progress(job_id)}"
        time.sleep(0.05)
    progress = executor.progress(job_id)
    assert progress.state is not JobState.FAILED, progress.error
    return progress


def drain(executor: SparkExecutor, plan: lp.LogicalPlan, context: JobContext, name: str = "q") -> Progress:
    executor.start(Job(name, name, "local", plan), context, drain=True)
    return wait(executor, name)
