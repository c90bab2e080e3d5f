"""(b) and (c): Headrace's trees, one for each query, or one for all, through the executor that runs them.

Trees of their own run four at a time, as `headrace run --drain` keeps jobs; all at once their Python workers
would not fit into memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.windows.spec import NONE, Report, RunSpec, given
from benchmarks.windows.workloads import KEY, TIME, VALUES, WATERMARK_SECONDS, WindowQuery
from headrace.catalog.model import FileSource, Format, Project, Query, Sink, SinkKind, Site, Stream
from headrace.errors import NotSupported
from headrace.plan.placed import TreeJob, TreeMember, shape_of
from headrace.plan.types import DataType
from headrace.runtime.executor import ENDED, JobContext, JobState
from headrace.runtime.spark.executor import SparkExecutor
from headrace.service.members import member_of

ALONE = "fragments"
"""The engine's name where every query has a tree of its own."""
_AT_ONCE = 4
_POLL_SECONDS = 0.1
_DROPPED = SinkKind.CONSOLE
"""Without anybody to show rows to, they are made and thrown away."""


def stream(spec: RunSpec) -> Stream:
    columns = {TIME: DataType.TIMESTAMP, KEY: DataType.INT} | dict.fromkeys(VALUES, DataType.DOUBLE)
    source = FileSource(path=spec.parquet, format=Format.PARQUET, files_per_batch=spec.files_per_batch)
    return Stream(
        name="s", columns=columns, time=TIME, watermark=WATERMARK_SECONDS * 1_000_000, source=source
    )


def sql(query: WindowQuery) -> str:
    wanted = ", ".join(
        f"{'count(*)' if function == 'count' else f'{function}({column})'} AS {name}"
        for name, (function, column) in zip(query.columns, query.aggregates, strict=True)
    )
    window = f"RANGE {query.range} SECONDS SLIDE {query.slide} SECONDS"
    return f"SELECT window_end, {KEY}, {wanted} FROM s [{window}] GROUP BY {KEY}"


def project(spec: RunSpec) -> Project:
    """What headrace.yaml would say."""
    return Project(
        name="benchmark",
        root=spec.folder,
        streams={"s": stream(spec)},
        tables={},
        sites={"local": Site(name="local", endpoint=f"local[{spec.cores}]")},
        links=(),
        queries={query.name: Query(name=query.name, sql=sql(query)) for query in spec.queries},
    )


def trees(spec: RunSpec) -> list[TreeJob]:
    made, members = project(spec), list[TreeMember]()
    for query in made.queries.values():
        found = member_of(made, query)
        if isinstance(found, str):
            raise NotSupported(f"{query.name} is in no tree: {found}")
        members.append(found)
    groups = [(member,) for member in members] if spec.engine == ALONE else [tuple(members)]
    return [TreeJob(f"t{n}", "local", shape_of(group), group) for n, group in enumerate(groups)]


def _sink(spec: RunSpec) -> Sink:
    return Sink(kind=_DROPPED if spec.sink == NONE else SinkKind.PARQUET)


def context(spec: RunSpec, name: str) -> JobContext:
    return JobContext(
        streams={"s": stream(spec)},
        tables={},
        sink=_sink(spec),
        root=spec.folder,
        state=_state(spec.folder, name),
        results=spec.results(name),
        endpoint=f"local[{spec.cores}]",
        shuffle_partitions=spec.cores,
    )


def _state(root: Path, name: str) -> Path:
    return root / ".headrace" / "jobs" / name


def run(executor: SparkExecutor, spec: RunSpec, jobs: Sequence[TreeJob]) -> None:
    """All trees to the end of the input, some at a time."""
    waiting, running = list(jobs), list[TreeJob]()
    while waiting or running:
        while waiting and len(running) < _AT_ONCE:
            tree = waiting.pop(0)
            members = {m.query: context(spec, m.query) for m in tree.members}
            executor.start_tree(tree, context(spec, tree.id), members, drain=True)
            running.append(tree)
        time.sleep(_POLL_SECONDS)
        for tree in [tree for tree in running if executor.status(tree.id) in ENDED]:
            running.remove(tree)
            _check(executor, tree)


def _check(executor: SparkExecutor, tree: TreeJob) -> None:
    seen = executor.progress(tree.id)
    if seen.state is not JobState.FINISHED or seen.late_rows:
        raise RuntimeError(f"{tree.id} is {seen.state}, {seen.late_rows} rows late: {seen.error}")


def main() -> None:
    began, spec, report = time.perf_counter(), given(), Report()
    jobs = trees(spec)
    executor = SparkExecutor(os.environ, memory=spec.memory)
    report.ready = time.perf_counter() - began
    try:
        run(executor, spec, jobs)
        report.state_rows = sum(executor.progress(tree.id).state_rows or 0 for tree in jobs)
    finally:
        executor.close()
    report.seconds = time.perf_counter() - began - report.ready
    report.checkpoints = [str(_state(spec.folder, tree.id) / "checkpoint") for tree in jobs]
    report.write(spec.folder)


if __name__ == "__main__":
    main()
