"""Random query x random out-of-order stream x random split into micro-batches: Spark against the reference.

Several cases run at once, each as its own job in one session, because a small streaming query spends most
of its time waiting.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.catalog.model import Query, SinkKind
from headrace.errors import HeadraceError
from headrace.plan.placed import Job
from headrace.rewrite.driver import rewrite
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import ENDED, JobContext, JobState
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from headrace.sql.bind import bind_query
from tests.property.generate_queries import Case, random_case
from tests.spark.harness import context_of, with_files, write_batches

AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    kind: str
    rows: int
    problem: str
    """Empty: the answers are equal."""


@dataclass(frozen=True, slots=True)
class _Running:
    seed: int
    case: Case
    job: Job
    context: JobContext


def _start(executor: SparkExecutor, seed: int, root: Path) -> _Running:
    rng = random.Random(seed)
    case = random_case(rng)
    name = f"case{seed}"
    plan = bind_query(Query(name=name, sql=case.sql), case.streams, case.tables)
    plan = rewrite(plan) if rng.random() < 0.8 else plan
    streams = {}
    for stream, batches in case.batches.items():
        write_batches(root / name / stream, batches)
        streams[stream] = with_files(
            case.streams[stream], root / name / stream, rng.choice((1, 1, 1, 2, None))
        )
    context = replace(context_of(root / name, streams, case.tables, name=name), shuffle_partitions=2)
    job = Job(name, name, "local", plan)
    executor.start(job, context, drain=True)
    return _Running(seed, case, job, context)


def _judge(executor: SparkExecutor, running: _Running) -> Outcome:
    job, case = running.job, running.case
    progress = executor.progress(job.id)
    expected = evaluate(job.plan, case.inputs())
    problem = ""
    if progress.state is not JobState.FINISHED:
        problem = f"{progress.state}: {progress.error}"
    else:
        got = read_results(running.context.results, SinkKind.PARQUET, job.plan.schema)
        approximate, spread = inexact_columns(job.plan)
        difference = multiset_difference(expected, got, approximate=approximate, spread=spread)
        problem = difference.text() if difference else ""
        if not problem and progress.late_rows:
            problem = f"{progress.late_rows} rows counted as late; none was"
    if problem:
        problem = f"seed {running.seed} ({case.kind}): {problem}\n{case.sql}"
    return Outcome(running.seed, case.kind, expected.num_rows, problem)


def run_cases(
    executor: SparkExecutor,
    seeds: Iterable[int],
    root: Path,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Run and judge all cases; what a case leaves on disk is removed unless it failed."""
    waiting, outcomes = list(seeds)[::-1], list[Outcome]()
    running: list[_Running] = []
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            seed = waiting.pop()
            try:
                running.append(_start(executor, seed, root))
            except HeadraceError as error:
                outcomes.append(Outcome(seed, "?", 0, f"seed {seed}: {error.render()}"))
                on_outcome(outcomes[-1])
        for one in [r for r in running if executor.status(r.job.id) in ENDED]:
            running.remove(one)
            outcomes.append(_judge(executor, one))
            on_outcome(outcomes[-1])
            if not outcomes[-1].problem:
                shutil.rmtree(one.context.root)
        time.sleep(0.05)
    return outcomes
