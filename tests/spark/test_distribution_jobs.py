"""A plan of the paper cut over two sites: its jobs give what the plan gives in one piece."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from headrace.catalog.model import SinkKind
from headrace.planners.distribution.plans import joins_in_a_row
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import ENDED, JobState
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from headrace.service.channel_layout import channel_context, enlist_readers, ports_of
from headrace.service.distribution_feed import Feeder
from headrace.service.distribution_jobs import Pace, channel_plan, pieces_by_site, project_of, whole_plans

pytestmark = pytest.mark.soak


def test_jobs_of_a_cut_plan_give_its_rows(executor: SparkExecutor, tmp_path: Path) -> None:
    problem = joins_in_a_row(2, 2)
    pace = Pace(20.0, window=3.0, trigger=0.2)
    table = {name: f"s{number % 2 + 1}" for number, name in enumerate(problem.operator)}
    plan = channel_plan(problem, pieces_by_site(problem, table), table, pace)
    assert len(plan.jobs) == 2
    project = project_of(problem, tmp_path, {"s1": "local[2]", "s2": "local[2]"}, pace)
    feeder = Feeder(tmp_path / "in", [stream.id for stream in problem.streams], pace.rate, 0.5, 12.0)
    feeder.start()
    feeder.stop()
    enlist_readers(project, plan)
    for job in plan.jobs:
        context = channel_context(project, plan, job)
        executor.start_channel(job, context, ports_of(project, plan, job), drain=True)
    deadline = time.monotonic() + 120
    while any(executor.status(job.id) not in ENDED for job in plan.jobs):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert [executor.status(job.id) for job in plan.jobs] == [JobState.FINISHED] * 2
    whole = whole_plans(problem, pace)["q1"]
    wanted = evaluate(whole, feeder.tables())
    got = read_results(tmp_path / "results" / "q1", SinkKind.PARQUET, whole.schema)
    difference = multiset_difference(wanted, got)
    assert wanted.num_rows > 1000
    assert not difference, difference.text()
