"""(d) Flink SQL from PyPI, in its own environment: HOP with a statement set, one job for all queries.

The planner reads the source once for all statements. Parallelism is the number of cores, objects are reused,
state is on the heap (the fastest), with a checkpoint every ten seconds, since Spark and Headrace keep one for
every batch. Windows are cut into slices by Flink itself. Mini-batches are set, but its window aggregates do
not use them: they have buffers of their own. Input is CSV, the fastest format that the package can read; what
that costs is measured apart, by a query that only counts.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks.windows.spec import NONE, Report, RunSpec, given
from benchmarks.windows.workloads import KEY, TIME, VALUES, WATERMARK_SECONDS, WindowQuery

READING = "flink-read"
"""The engine's name where it only counts the rows of its input."""


def settings(spec: RunSpec) -> dict[str, str]:
    return {
        "parallelism.default": str(spec.cores),
        "pipeline.object-reuse": "true",
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": (spec.folder / "checkpoints").as_uri(),
        "table.local-time-zone": "UTC",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "1 s",
        "table.exec.mini-batch.size": "50000",
        "taskmanager.numberOfTaskSlots": str(spec.cores),
        # With the defaults a job of many statements finds too few network buffers.
        "taskmanager.memory.network.min": "512m",
        "taskmanager.memory.network.max": "512m",
        "taskmanager.memory.managed.size": "512m",
    }


def source(spec: RunSpec) -> str:
    values = ", ".join(f"{name} DOUBLE" for name in VALUES)
    return (
        f"CREATE TABLE s (millis BIGINT, {KEY} INT, {values}, {TIME} AS TO_TIMESTAMP_LTZ(millis, 3), "
        f"WATERMARK FOR {TIME} AS {TIME} - INTERVAL '{WATERMARK_SECONDS}' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{spec.csv}', 'format' = 'csv')"
    )


def sink(spec: RunSpec, query: WindowQuery) -> str:
    types = ["BIGINT" if function == "count" else "DOUBLE" for function, _ in query.aggregates]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(query.columns, types, strict=True))
    to = f"'connector' = 'filesystem', 'path' = '{spec.results(query.name)}', 'format' = 'csv'"
    where = "'connector' = 'blackhole'" if spec.sink == NONE else to
    return f"CREATE TABLE {query.name} (window_end TIMESTAMP(3), {KEY} INT, {columns}) WITH ({where})"


def statement(query: WindowQuery) -> str:
    calls = {"count": "COUNT(*)", "stddev": "STDDEV_SAMP({})"}
    wanted = ", ".join(
        calls.get(function, function.upper() + "({})").format(column) for function, column in query.aggregates
    )
    hop = f"HOP(TABLE s, DESCRIPTOR({TIME}), {_seconds(query.slide)}, {_seconds(query.range)})"
    return (
        f"INSERT INTO {query.name} SELECT window_end, {KEY}, {wanted} FROM TABLE({hop}) "
        f"GROUP BY window_start, window_end, {KEY}"
    )


def _seconds(number: int) -> str:
    """Flink's literals hold two digits unless told."""
    return f"INTERVAL '{number}' SECOND(6)"


def main() -> None:
    began, spec, report = time.perf_counter(), given(), Report()
    os.environ.setdefault("PYFLINK_PYTHON", sys.executable)
    from pyflink.common import Configuration  # type: ignore[import-not-found]
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    chosen = Configuration()
    for name, value in settings(spec).items():
        chosen.set_string(name, value)
    made = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(chosen).build()
    tables = TableEnvironment.create(made)
    report.ready = time.perf_counter() - began
    tables.execute_sql(source(spec))
    if spec.engine == READING:
        tables.execute_sql("CREATE TABLE n (n BIGINT) WITH ('connector' = 'blackhole')")
        tables.execute_sql("INSERT INTO n SELECT COUNT(*) FROM s").wait()
    else:
        taken = [query for query in spec.queries if query.whole]
        report.refused = [query.name for query in spec.queries if not query.whole]
        together = tables.create_statement_set()
        for query in taken:
            tables.execute_sql(sink(spec, query))
            together.add_insert_sql(statement(query))
        together.execute().wait()
    report.seconds = time.perf_counter() - began - report.ready
    report.write(spec.folder)


def environment(environ: dict[str, str], spec: RunSpec, java: Path) -> dict[str, str]:
    """What the process must find: the Java to use and its heap."""
    return environ | {"JAVA_HOME": str(java), "JVM_ARGS": f"-Xmx{spec.memory}"}


if __name__ == "__main__":
    main()
