"""`headrace run` of a project that is spread over sites: the answers are those of the whole queries."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan
from headrace.runtime.executor import ENDED, JobState
from headrace.runtime.spark.executor import SparkExecutor
from headrace.runtime.spark.sites import _rehearsal, _wait
from headrace.service.layout import own_folder, state_file
from headrace.service.moving_run import movable
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.service.spread_records import channels_of
from headrace.state.store import Store
from tests import kills
from tests.kills_spread import make_project
from tests.spark.harness import write_batches

pytestmark = pytest.mark.spark


class Borrowed:
    """The session of all tests: closed by nobody, its jobs by everybody."""

    def __init__(self, executor: SparkExecutor) -> None:
        self._executor, self._own = executor, set[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._executor, name)
        if not name.startswith("start"):
            return found

        def start(unit: Any, *args: Any, **how: Any) -> None:
            found(unit, *args, **how)
            self._own.add(unit.id)

        return start

    def close(self) -> None:
        for name in self._own:
            if self._executor.status(name) not in ENDED:
                self._executor.stop(name)


ROUND = """
name: round
streams:
  readings:
    columns: {ts: timestamp, plug: int, value: double}
    time: ts
    watermark: 4 seconds
    site: west
    source: {kind: files, path: readings, format: parquet, files_per_batch: 3}
  meters:
    columns: {ts: timestamp, plug: int, value: double}
    time: ts
    watermark: 4 seconds
    site: east
    source: {kind: files, path: meters, format: parquet, files_per_batch: 3}
sites: {west: {endpoint: "local[2]"}, mid: {endpoint: "local[2]"}, east: {endpoint: "local[2]"}}
links:
  - {between: [west, east], latency: 1ms, bandwidth: 500}
  - {between: [west, mid], latency: 10ms}
  - {between: [mid, east], latency: 10ms}
queries:
  counted:
    site: east
    sql: |
      SELECT window.start, count(*) AS n, max(m.value) AS top
      FROM readings AS r JOIN meters AS m ON r.plug = m.plug
       AND m.ts BETWEEN r.ts AND r.ts + INTERVAL 5 SECONDS
      GROUP BY window(r.ts, '6 seconds', '3 seconds')
planner: {shuffle_partitions: 1, parallel: 8, spread: true}
"""


def _run(project: Project, executor: SparkExecutor, options: Options, until: Any = None) -> Outcome:
    with Store(state_file(project)) as store:
        deadline = time.monotonic() + 600

        def watch(snapshot: Snapshot) -> None:
            if (until is not None and until(snapshot)) or time.monotonic() > deadline:
                runner.request_stop()

        runner = Runner(project, store, lambda: datetime.now(UTC), time.sleep, options, Hooks(watch))
        runner.prepare()
        return runner.run(Borrowed(executor))


def _plan(project: Project) -> ChannelPlan:
    with Store(state_file(project)) as store:
        return channels_of(store.deployment())


def _rehearse(executor: SparkExecutor, project: Project, plan: ChannelPlan, folder: Path) -> None:
    """What a move does at its target before it stops anything."""
    for job in (next(job for job in plan.makers if job.joins), plan.job("counted")):
        unit = movable(project, job, plan)
        run = _rehearsal(unit, "west", folder / f"rehearsal-{job.id}")
        run.begin(executor._session(unit.context("west")), None)
        _wait(run, "west")


def test_a_spread_project_answers_as_the_whole_one(executor: SparkExecutor, tmp_path: Path) -> None:
    root = tmp_path / "spread"
    inputs = make_project(root, 3, files_per_batch=3)
    late = [path for name in inputs for path in sorted((root / name).glob("*.parquet"))[6:]]
    tables = {path: path.read_bytes() for path in late}
    for path in late:
        path.unlink()
    project = load_project(root)

    def given(snapshot: Snapshot) -> bool:
        seen = {one.job: one.progress for one in snapshot.jobs if one.progress is not None}
        return (
            len(seen) == 3
            and seen["picked"].output_rows > 0
            and all(one.batch is not None for one in seen.values())
        )

    # Rows come through two jobs before all are stopped, somewhere.
    outcome = _run(project, executor, Options(), given)
    assert not outcome.failures and given(outcome.last), outcome.last
    plan = _plan(project)
    assert {job.query for job in plan.jobs if job.query} == {"counted", "picked"} and len(plan.trees) == 1
    assert {job.site for job in plan.makers} == {"west", "east"}
    assert any({"counted", "picked"} <= {one.id for one in plan.readers(s.id)} for s in plan.streams)
    for path, data in tables.items():
        path.write_bytes(data)
    outcome = _run(project, executor, Options(drain=True))
    assert outcome.exit_code == 0, outcome.failures
    assert {job.progress.state for job in outcome.last.jobs if job.progress} == {JobState.FINISHED}
    rows, problems = kills._differences(root, inputs)
    assert rows > 200 and problems == []
    assert _plan(project) == plan
    _rehearse(executor, project, plan, tmp_path)
    left = list(own_folder(project).glob("channels/*/rows/*.parquet"))
    assert left == [], "all is read, so all is gone"


def test_what_admission_sends_round_a_full_link_answers_as_the_whole_query(
    executor: SparkExecutor, tmp_path: Path
) -> None:
    """Readings are 20 kB/s, and the link to the query's site has 500 B/s: they are passed on by mid."""
    root, rng = tmp_path / "round", random.Random(5)
    root.mkdir()
    (root / "headrace.yaml").write_text(ROUND)
    batches = {name: kills._batches(rng, 240, "value") for name in ("readings", "meters")}
    for name, some in batches.items():
        write_batches(root / name, some)
    project = load_project(root)
    outcome = _run(project, executor, Options(drain=True))
    assert outcome.exit_code == 0, outcome.failures
    plan = _plan(project)
    (relay,) = [job for job in plan.makers if job.id.startswith("relay-")]
    assert relay.site == "mid" and {job.site for job in plan.jobs if job.joins} == {"east"}
    assert any(
        "admission has placed them at east; what they read is passed on by mid" in note
        for note in outcome.notes
    )
    rows, problems = kills._differences(root, {n: pa.concat_tables(some) for n, some in batches.items()})
    assert rows > 10 and problems == []
