"""Runs one query on one engine and measures it: from the query's text or code to the last row on disk.

Headrace and plain Spark share one JVM and one session, so that neither pays for the other's start. CPU is
that of this process and its children (the JVM), user and system, between the two ends of a run.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks import plain
from benchmarks.answers import problem
from benchmarks.report import Engine, Sample
from headrace.catalog.model import Project, SinkKind
from headrace.plan import logical as lp
from headrace.rewrite.driver import rewrite
from headrace.runtime.duckdb.load import load_stream
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import ENDED, Executor, JobState
from headrace.runtime.results import read_results
from headrace.service.folders import make_folders, remove_folders
from headrace.service.layout import job_context, own_folder
from headrace.service.planning import bind, plan_project, plan_query
from headrace.service.session import spark_executor

_POLL_SECONDS = 0.01
_REST_SECONDS = 0.2
"""Between two runs, so that what Spark tidies up after one is not charged to the next."""


def cpu_seconds() -> float:
    """CPU used so far by this process and the children that live."""
    mine = psutil.Process()
    times = [p.cpu_times() for p in (mine, *mine.children(recursive=True))]
    return sum(t.user + t.system for t in times)


class Bench:
    """The engines over the data of one project. `executor` is shared: a process has one Spark."""

    def __init__(self, project: Project, executor: Executor) -> None:
        self._project, self._executor = project, executor
        self._data = own_folder(project) / "data"
        self._reference: dict[str, pa.Table] = {}
        self._run: dict[Engine, Callable[[str], str]] = {
            Engine.PLAIN: self._plain,
            Engine.HEADRACE: self._headrace,
            Engine.DUCKDB: self._duckdb,
        }

    def plan(self, query: str) -> lp.LogicalPlan:
        return rewrite(bind(self._project, self._project.queries[query]))

    def input_rows(self, query: str) -> int:
        folders = (self._data / stream for stream in lp.streams_of(self.plan(query)))
        files = (file for folder in folders for file in folder.glob("part-*.parquet"))
        return sum(int(pq.read_metadata(file).num_rows) for file in files)

    def reference(self, query: str) -> pa.Table:
        if query not in self._reference:
            self._reference[query] = evaluate(self.plan(query), self._inputs(query))
        return self._reference[query]

    def measure(self, query: str, engine: Engine) -> Sample:
        """Run a query from scratch; the clock stands while folders are cleared and answers checked."""
        self._clear(query)
        time.sleep(_REST_SECONDS)
        cpu, wall = cpu_seconds(), time.perf_counter()
        trouble = self._run[engine](query)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        got = read_results(self._output(query, engine), SinkKind.PARQUET, self.plan(query).schema)
        wrong = trouble or problem(self.reference(query), got, open_end=engine is Engine.PLAIN)
        return Sample(wall, cpu, got.num_rows, wrong)

    def _inputs(self, query: str) -> Mapping[str, pa.Table]:
        root, streams = self._project.root, lp.streams_of(self.plan(query))
        return {s: load_stream(self._project.streams[s], root, self._data) for s in streams}

    def _clear(self, query: str) -> None:
        job = plan_query(self._project, self._project.queries[query])
        remove_folders(job_context(self._project, job), results=True)
        make_folders(job_context(self._project, job), results=True)
        for engine in (Engine.PLAIN, Engine.DUCKDB):
            shutil.rmtree(self._own(query, engine), ignore_errors=True)
            self._output(query, engine).mkdir(parents=True)

    def _own(self, query: str, engine: Engine) -> Path:
        return self._project.root / engine.name.lower() / query

    def _output(self, query: str, engine: Engine) -> Path:
        if engine is Engine.HEADRACE:
            return self._project.root / "results" / query
        return self._own(query, engine) / "rows"

    def _plain(self, query: str) -> str:
        spark = SparkSession.builder.getOrCreate()
        checkpoint = self._own(query, Engine.PLAIN) / "checkpoint"
        plain.run(spark, query, self._data, self._output(query, Engine.PLAIN), checkpoint)
        return ""

    def _headrace(self, query: str) -> str:
        job = plan_query(self._project, self._project.queries[query])
        self._executor.start(job, job_context(self._project, job), drain=True)
        while self._executor.status(job.id) not in ENDED:
            time.sleep(_POLL_SECONDS)
        progress = self._executor.progress(job.id)
        if progress.state is not JobState.FINISHED:
            return f"{progress.state}: {progress.error}"
        return f"{progress.late_rows} rows counted as late; none was" if progress.late_rows else ""

    def _duckdb(self, query: str) -> str:
        answer = evaluate(self.plan(query), self._inputs(query))
        pq.write_table(answer, self._output(query, Engine.DUCKDB) / "rows.parquet")
        return ""


def open_executor(project: Project, environ: Mapping[str, str]) -> Executor:
    """The executor that `headrace run` would open for this project."""
    return spark_executor(project, plan_project(project), environ, lambda query, rows: None)
